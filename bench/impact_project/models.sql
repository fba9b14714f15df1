-- model: stg_customers
create or replace table stg_customers as
select customer_id, name as customer_name, lower(email) as email, country, signup_date, referrer_id, is_active
from customers;
-- model: stg_orders
create or replace view stg_orders as
select order_id, customer_id, order_total, currency, status, ordered_at, cast(ordered_at as date) as ordered_on, store_id
from orders;
-- model: stg_items
create or replace table stg_items as
select *, quantity * unit_price as gross from order_items;
-- model: stg_products
create or replace view stg_products as select * from products;
-- model: stg_stores
create or replace table stg_stores as select * exclude (manager_id) from stores;
-- model: stg_payments
create or replace table stg_payments as
select p.payment_id, p.order_id, p.amount, upper(p.method) as method, p.paid_at from payments p;
-- model: stg_events
create or replace table stg_events as select * replace (lower(kind) as kind) from events;
-- model: all_stores
create or replace table all_stores as select * from stg_stores where store_id > 0;
-- model: live_products
create or replace view live_products as select * from stg_products where price > 1;
-- model: star_of_star
create or replace table star_of_star as select * from live_products;
-- model: product_names
create or replace table product_names as select product_id, product_name from star_of_star;
-- model: heavy_products
create or replace table heavy_products as select product_id, category from live_products where weight_kg > 0.5;
-- model: order_totals
create or replace table order_totals as
select order_id, sum(gross) as gross, sum(gross * (1 - discount)) as net, count(*) as items from stg_items group by order_id;
-- model: fct_orders
create or replace table fct_orders as
with paid as (select order_id, sum(amount) as paid from stg_payments group by order_id),
     totals as (select * from order_totals)
select o.order_id, o.customer_id, o.order_total, t.net, p.paid, o.status, o.ordered_on
from stg_orders o
left join totals t using (order_id)
left join paid p on p.order_id = o.order_id;
-- model: dim_customers
create or replace table dim_customers as
select c.customer_id, c.customer_name, c.country, c.signup_date, r.customer_name as referrer
from stg_customers c left join stg_customers r on r.customer_id = c.referrer_id;
-- model: customer_orders
create or replace table customer_orders as
select c.customer_id, c.country, count(f.order_id) as orders, coalesce(sum(f.order_total), 0) as revenue
from dim_customers c left join fct_orders f on f.customer_id = c.customer_id
group by 1, 2;
-- model: top_customers
create or replace view top_customers as
select customer_id, revenue, rank() over (order by revenue desc) as place from customer_orders qualify place <= 10;
-- model: revenue_daily
create or replace table revenue_daily as
select ordered_on, sum(order_total) as revenue, count(*) as orders from fct_orders where status <> 'void' group by ordered_on;
-- model: revenue_monthly
create or replace table revenue_monthly as
select date_trunc('month', ordered_on) as month, sum(revenue) as revenue from revenue_daily group by 1;
-- model: revenue_growth
create or replace table revenue_growth as
select month, revenue, revenue - lag(revenue) over (order by month) as growth from revenue_monthly;
-- model: revenue_by_store
create or replace table revenue_by_store as
select s.store_id, s.city, sum(o.order_total) as revenue
from stg_orders o join stg_stores s using (store_id) group by all;
-- model: budget_check
create or replace table budget_check as
select b.store_id, b.month, b.target, r.revenue, r.revenue >= b.target as met
from budgets b join revenue_by_store r on r.store_id = b.store_id;
-- model: orders_eur
create or replace table orders_eur as
select o.order_id, o.order_total * c.rate as total_eur from orders o join currencies c on c.currency = o.currency;
-- model: natural_money
create or replace table natural_money as
select order_id, rate from orders natural join currencies;
-- model: money_everything
create or replace table money_everything as
select * from orders join currencies using (currency);
-- model: unqualified_join
create or replace table unqualified_join as
select order_id, name, email, order_total from orders join customers on orders.customer_id = customers.customer_id where status = 'paid';
-- model: contacts
create or replace table contacts as
select name, email as address from customers union all select city, 'store' from stores;
-- model: stores_twice
create or replace table stores_twice as
select * from stores union all select * from stores where opened_on > date '2020-06-01';
-- model: people_union
create or replace table people_union as
select customer_id as id, name from customers union select product_id, product_name from products;
-- model: orders_and_voids
create or replace table orders_and_voids as
select * from stg_orders where status = 'paid' union all select * from stg_orders where status = 'void';
-- model: recent_events
create or replace view recent_events as
select user_id, kind, happened_at from stg_events where happened_at > timestamp '2025-02-01 02:00:00';
-- model: event_counts
create or replace table event_counts as
select user_id, count(*) filter (where kind = 'buy') as buys, count(*) as events from recent_events group by user_id;
-- model: sessions
create or replace table sessions as
with marked as (
  select *, case when date_diff('minute', lag(happened_at) over w, happened_at) > 5 then 1 else 0 end as starts
  from recent_events window w as (partition by user_id order by happened_at)
)
select user_id, happened_at, sum(starts) over (partition by user_id order by happened_at) as session from marked;
-- model: funnel
create or replace table funnel as
select c.country, sum(e.buys) as buys from event_counts e join customers c on c.customer_id = e.user_id group by c.country;
-- model: first_orders
create or replace table first_orders as
select * from (select *, row_number() over (partition by customer_id order by ordered_at) as n from orders) where n = 1;
-- model: latest_payment
create or replace table latest_payment as
select order_id, arg_max(method, paid_at) as method, max(paid_at) as paid_at from payments group by order_id;
-- model: unpaid
create or replace table unpaid as
select order_id from orders o where not exists (select 1 from payments p where p.order_id = o.order_id and p.amount > 0);
-- model: above_average
create or replace table above_average as
select product_id, price from products p where price > (select avg(price) from products q where q.category = p.category);
-- model: in_list
create or replace table in_list as
select customer_id from customers where country in ('DE', 'FR') and customer_id in (select customer_id from orders where order_total > 50);
-- model: tag_list
create or replace table tag_list as
select product_id, unnest(string_split(tags, ',')) as tag from products;
-- model: category_pivot
create or replace table category_pivot as
select sum(case when category = 'toys' then price else 0 end) as toys, sum(case when category = 'books' then price else 0 end) as books from products;
-- model: org
create or replace table org as
with recursive chain as (
  select customer_id, referrer_id, 0 as depth from customers where referrer_id is null
  union all
  select c.customer_id, c.referrer_id, chain.depth + 1 from customers c join chain on c.referrer_id = chain.customer_id where chain.depth < 4
)
select customer_id, depth from chain;
-- model: cohort
create or replace table cohort as
select date_trunc('year', signup_date) as year, count(*) as customers, bool_and(is_active) as all_active from customers group by year order by year;
-- model: rfm
create or replace table rfm as
select customer_id, max(ordered_at) as last_order, count(*) as frequency, avg(order_total) as value, ntile(4) over (order by max(ordered_at)) as r
from orders group by customer_id having count(*) > 1;
-- model: everything_about_orders
create or replace table everything_about_orders as
select o.*, c.name, c.country, s.city from orders o join customers c using (customer_id) join stores s on s.store_id = o.store_id;
-- model: city_sales
create or replace table city_sales as
select city, country, sum(order_total) as sales from everything_about_orders group by city, country;
-- model: labels
create or replace table labels as
select 'order ' || order_id as label, coalesce(status, 'none') as status, round(order_total) as rounded from orders;
-- model: ids_only
create or replace table ids_only as select order_id from stg_orders;
-- model: row_counts
create or replace table row_counts as
select 'orders' as name, count(*) as n from orders union all select 'items', count(*) from order_items;
-- model: load_orders
insert into inc_orders (order_id, order_total, ordered_at)
select order_id, order_total, ordered_at from orders where order_id > (select coalesce(max(order_id), 0) from inc_orders);
-- model: load_events
insert into inc_events select * from events where event_id not in (select event_id from inc_events);
-- model: load_payments
insert into inc_payments by name select * from payments where payment_id not in (select payment_id from inc_payments);
-- model: inc_daily
create or replace table inc_daily as
select cast(ordered_at as date) as day, sum(order_total) as total from inc_orders group by 1;
-- model: write_audit
insert into audit_log (run, rows_seen) select 'nightly', count(*) from orders;
-- model: write_audit_everything
insert into audit_log select 'everything', count(*), max(status) from orders;
-- model: audit_report
create or replace view audit_report as select run, max(rows_seen) as most from audit_log group by run;
