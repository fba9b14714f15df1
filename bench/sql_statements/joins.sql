-- Joins of every kind.

-- name: inner_join
select o.order_id, c.name from orders o join customers c on o.customer_id = c.customer_id;

-- name: comma_join
select o.order_id, c.name
from orders o, customers c
where o.customer_id = c.customer_id and c.country = 'FR';

-- name: left_join
select c.customer_id, o.amount from customers c left join orders o on o.customer_id = c.customer_id;

-- name: left_join_condition_on_right
select c.name, o.order_id
from customers c left join orders o on o.customer_id = c.customer_id and o.status = 'paid';

-- name: right_join
select s.on_hand, p.title from stock s right join products p on p.product_id = s.product_id;

-- name: full_join
select s.on_hand, d.arrived, coalesce(s.warehouse, d.warehouse) as warehouse
from stock s full join deliveries d
    on s.product_id = d.product_id and s.warehouse = d.warehouse;

-- name: cross_join
select t.country, w.warehouse
from targets t cross join (select distinct warehouse from stock) w;

-- name: join_using
select order_id, name, amount from orders join customers using (customer_id);

-- name: join_using_key_selected
select customer_id, count(*) as n from orders join customers using (customer_id) group by customer_id;

-- name: left_join_using
select customer_id, c.name, o.amount from customers c left join orders o using (customer_id);

-- name: right_join_using
select product_id, s.on_hand, p.title from stock s right join products p using (product_id);

-- name: full_join_using
select product_id, warehouse, on_hand, arrived
from stock full join deliveries using (product_id, warehouse);

-- name: join_using_star
select * from stock join deliveries using (product_id, warehouse);

-- name: join_using_three_tables
select product_id, p.title, s.warehouse, d.arrived
from products p join stock s using (product_id) left join deliveries d using (product_id, warehouse);

-- name: natural_join
select * from stock natural join deliveries;

-- name: natural_left_join
select product_id, warehouse, arrived, reserved from deliveries natural left join stock;

-- name: semi_join
select c.customer_id, c.name from customers c semi join orders o
    on o.customer_id = c.customer_id and o.amount > 150;

-- name: anti_join
select c.name, c.city from customers c anti join orders o using (customer_id);

-- name: asof_join
select i.order_id, o.ordered_on, p.list_price
from items i
join orders o on o.order_id = i.order_id
asof join prices p on p.product_id = i.product_id and p.valid_from <= o.ordered_on;

-- name: asof_left_join
select s.product_id, s.counted_on, p.list_price, p.valid_from
from stock s asof left join prices p
    on s.product_id = p.product_id and s.counted_on >= p.valid_from;

-- name: positional_join
select a.country, b.country as same
from (select country from targets order by country) a
positional join (select country from targets order by country) b;

-- name: self_join
select e.name, m.name as manager, e.salary - m.salary as gap
from employees e join employees m on e.manager_id = m.employee_id;

-- name: self_join_chain
select e.name as worker, m.department as of_manager, b.salary as of_boss
from employees e
left join employees m on m.employee_id = e.manager_id
left join employees b on b.employee_id = m.manager_id;

-- name: range_join
select a.employee_id, count(b.employee_id) as earning_more
from employees a left join employees b on b.salary > a.salary and b.department = a.department
group by a.employee_id;

-- name: join_of_aggregates
select c.country, o.n, c.credits
from (select country, sum(credit) as credits, min(customer_id) as first from customers group by 1) c
join (select customer_id, count(*) as n from orders group by 1) o on o.customer_id = c.first;

-- name: parenthesised_join
select p.title, x.amount
from products p
left join (items i join orders o on o.order_id = i.order_id) on i.product_id = p.product_id,
lateral (select o.amount * i.quantity as amount) x;

-- name: join_on_expression
select c.name, o.order_id from customers c join orders o
    on lower(substring(c.segment, 1, 1)) = lower(substring(o.channel, 1, 1)) and c.credit > o.amount;

-- name: join_then_filter_on_missing
select c.customer_id from customers c left join orders o using (customer_id)
where o.order_id is null;

-- name: many_way_join
select c.country, p.category, sum(i.quantity * i.unit_price) as revenue
from items i
join orders o using (order_id)
join products p using (product_id)
join customers c on c.customer_id = o.customer_id
where o.status in ('paid', 'sent')
group by c.country, p.category;

-- name: nested_views
create view paid_orders as select * from orders where status = 'paid';
create view paid_by_customer as
    select customer_id, sum(amount) as paid from paid_orders group by customer_id;
select c.name, p.paid from customers c join paid_by_customer p using (customer_id);

-- name: join_using_star_key_in_the_middle
select * from orders join customers using (customer_id);

-- name: left_join_using_star
select * from stock left join deliveries using (product_id);

-- name: join_with_subquery_in_condition
select c.name, o.order_id from customers c join orders o
    on o.customer_id = c.customer_id and o.amount > (select avg(amount) from orders where channel = 'web' or c.segment = 'retail');

-- name: join_on_constant
select t.country, m.top from targets t join (select max(credit) as top from customers) m on true;

-- name: join_on_inequality_of_expressions
select t.country, e.name from targets t join employees e on t.q1 * 8 between e.salary - 500 and e.salary + 500;

-- name: join_unnested_key
select c.name, x.v from customers c join (values ('vip', 1), ('late', 2)) as x (k, v) on x.k = any (c.tags);

-- name: semi_join_using
select product_id, on_hand from stock semi join deliveries using (product_id, warehouse);

-- name: full_join_of_aggregates
select coalesce(a.customer_id, b.customer_id) as customer_id, a.n, b.spent
from (select customer_id, count(*) as n from visits group by 1) a
full join (select customer_id, sum(amount) as spent from orders group by 1) b
    on a.customer_id = b.customer_id;

-- name: two_joins_to_the_same_table
select s.product_id, a.title as this, b.title as that
from stock s join products a on a.product_id = s.product_id left join products b on b.product_id = s.reserved;

-- name: view_with_star_and_rename
create view v1 as select * rename (amount as total) from orders;
create view v2 as select * exclude (note, channel) from v1 where total > 30;
select v2.total, c.city from v2 join customers c using (customer_id);
