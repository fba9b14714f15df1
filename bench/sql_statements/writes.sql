-- Statements that write, alone and one after another.

-- name: create_table_as
create table totals as
select customer_id, sum(amount) as total, max(ordered_on) as last from orders where status <> 'void' group by 1;

-- name: create_view_with_columns
create view by_country (land, people) as select country, count(*) from customers group by country;

-- name: create_table_then_insert
create table log (id integer, label varchar, amount decimal(12, 2));
insert into log select order_id, status, amount from orders where channel = 'web';

-- name: insert_with_column_list
create table log (id integer, label varchar, amount decimal(12, 2));
insert into log (amount, id) select amount, order_id from orders;

-- name: insert_by_name
create table log (id integer, label varchar, amount decimal(12, 2));
insert into log by name select amount, order_id as id from orders where amount > 30;

-- name: insert_twice
create table log (id integer, label varchar);
insert into log select order_id, status from orders;
insert into log select product_id, category from products where price > 20;

-- name: insert_into_existing
insert into archived_orders select order_id, status, amount, customer_id, ordered_on
from orders where status = 'sent';

-- name: insert_into_existing_by_name
insert into deliveries by name
select product_id, warehouse, reserved as arrived, counted_on as arrived_on from stock where on_hand > 20;

-- name: insert_values
create table log (id integer, n integer);
insert into log values (1, (select count(*) from visits where page = 'pay')), (2, 7);

-- name: insert_on_conflict
create table best (customer_id integer primary key, amount decimal(12, 2), status varchar);
insert into best
    select customer_id, min(amount), min(status) from orders where customer_id is not null group by 1;
insert into best
    select customer_id, max(amount), 'old' from archived_orders where customer_id is not null group by 1
    on conflict (customer_id) do update set amount = excluded.amount + best.amount;

-- name: insert_on_conflict_do_nothing
create table best (customer_id integer primary key, amount decimal(12, 2));
insert into best select customer_id, min(amount) from orders where customer_id is not null group by 1;
insert into best
    select customer_id, max(amount) from archived_orders where customer_id is not null group by 1
    on conflict do nothing;

-- name: update_set
update orders set discount = amount / 10, note = 'big' where amount > 150 and status = 'open';

-- name: update_with_case
update customers set credit = case when segment = 'business' then credit * 2 else credit end;

-- name: update_from
update stock set on_hand = on_hand + d.arrived, counted_on = d.arrived_on
from deliveries d where d.product_id = stock.product_id and d.warehouse = stock.warehouse;

-- name: update_with_subquery
update products set cost = (select min(list_price) from prices p where p.product_id = products.product_id)
where category = 'home';

-- name: update_where_in
update employees set salary = salary + 100
where department in (select department from employees where hired_on < date '2024-03-01');

-- name: delete_where
delete from visits where seconds < 60 or page = 'help';

-- name: delete_using
delete from orders using customers c where c.customer_id = orders.customer_id and c.country = 'CH';

-- name: delete_where_exists
delete from products where not exists (select 1 from items i where i.product_id = products.product_id and i.quantity > 5);

-- name: merge_update_and_insert
merge into stock as t
using deliveries as d on t.product_id = d.product_id and t.warehouse = d.warehouse
when matched then update set on_hand = t.on_hand + d.arrived, counted_on = d.arrived_on
when not matched then insert (product_id, warehouse, on_hand, reserved, counted_on)
    values (d.product_id, d.warehouse, d.arrived, 0, d.arrived_on);

-- name: merge_with_conditions
merge into stock as t
using (select product_id, warehouse, arrived from deliveries where arrived > 2) as d
    on t.product_id = d.product_id and t.warehouse = d.warehouse
when matched and d.arrived > 20 then delete
when matched and t.reserved > 4 then update set reserved = t.reserved - 1
when not matched and d.arrived < 25 then insert (product_id, on_hand) values (d.product_id, d.arrived);

-- name: merge_not_matched_by_source
merge into stock as t
using deliveries as d on t.product_id = d.product_id and t.warehouse = d.warehouse
when matched then update set on_hand = d.arrived
when not matched by source and t.on_hand < 20 then delete;

-- name: script_with_temp_table
create temp table paid as select customer_id, amount, channel from orders where status = 'paid';
create temp table by_customer as select customer_id, sum(amount) as total from paid group by customer_id;
create table report as
    select c.name, b.total from by_customer b join customers c on c.customer_id = b.customer_id;

-- name: script_with_temp_table_and_query
create temp table web as select * from orders where channel = 'web';
select customer_id, count(*) as n from web group by customer_id having count(*) > 1;

-- name: script_of_tables
create table step1 as select order_id, customer_id, amount - coalesce(discount, 0) as net from orders;
create table step2 as select customer_id, sum(net) as net from step1 group by customer_id;
create table step3 as select s.net, c.city from step2 s join customers c using (customer_id) where s.net > 40;

-- name: script_with_dropped_table
create temp table t as select product_id, on_hand from stock;
create table first_ as select product_id, on_hand from t;
drop table t;
create temp table t as select product_id, arrived from deliveries;
create table second_ as select product_id, arrived from t where arrived > 5;

-- name: script_with_replaced_view
create view v as select name, credit from customers;
create or replace view v as select name, salary as credit from employees where department = 'tech';
select name, credit from v;

-- name: script_insert_then_read
create temp table pool (id integer, v integer);
insert into pool select product_id, on_hand from stock where warehouse = 'north';
insert into pool select product_id, arrived from deliveries where warehouse = 'south';
select id, sum(v) as v from pool group by id;

-- name: script_update_then_read
create temp table pool as select product_id, price, category, cost from products;
update pool set price = cost where category = 'gift';
select product_id, price from pool;

-- name: view_over_union
create view everyone as
    select customer_id as id, name, country as place from customers
    union all
    select employee_id, name, department from employees where salary > 2500;

-- name: view_on_view
create view a as select order_id, amount, status from orders;
create view b as select order_id, amount from a where status = 'paid';
create view c as select count(*) as n, sum(amount) as total from b;

-- name: create_table_with_names_as
create table renamed (id, what) as select order_id, status from orders where amount > 20;

-- name: insert_select_star
create table copy_ as select * from deliveries where arrived > 10;
insert into copy_ select * from deliveries where arrived <= 5;

-- name: insert_with_cte
create table log (id integer, n bigint);
insert into log with t as (select customer_id, count(*) as n from orders group by 1) select customer_id, n from t where n > 1;

-- name: insert_or_replace
create table best (customer_id integer primary key, amount decimal(12, 2));
insert into best select customer_id, min(amount) from orders where customer_id is not null group by 1;
insert or replace into best
    select customer_id, max(amount) from archived_orders where customer_id is not null group by 1;

-- name: update_several_from_subquery
update stock set reserved = t.total, counted_on = t.last
from (select product_id, sum(arrived) as total, max(arrived_on) as last from deliveries group by product_id) t
where t.product_id = stock.product_id and stock.warehouse <> 'east';

-- name: update_with_exists
update customers set segment = 'gone'
where not exists (select 1 from visits v where v.customer_id = customers.customer_id and v.seconds > 100);

-- name: merge_by_source_expression
merge into stock as t
using (select product_id, max(warehouse) as warehouse, sum(arrived) as arrived from deliveries group by product_id) as d
    on t.product_id = d.product_id and t.warehouse = d.warehouse
when matched and d.arrived > t.reserved then update set reserved = d.arrived - t.reserved
when not matched by target then insert values (d.product_id, d.warehouse, d.arrived, null, date '2024-01-01');

-- name: delete_in_subquery
delete from items where order_id in (select order_id from orders where status = 'void' or amount < 40);

-- name: script_with_renamed_table
create table first_ as select customer_id, amount from orders where channel = 'web';
alter table first_ rename to second_;
create table third as select customer_id, sum(amount) as total from second_ group by customer_id;

-- name: script_delete_then_read
create temp table pool as select product_id, price, category from products;
delete from pool where category = 'gift';
select count(*) as n, max(price) as top from pool;

-- name: script_merge_then_read
create temp table pool as select product_id, on_hand, warehouse from stock where warehouse = 'north';
merge into pool using (select product_id, arrived from deliveries where warehouse = 'east') d on d.product_id = pool.product_id
when matched then update set on_hand = d.arrived
when not matched then insert values (d.product_id, d.arrived, 'new');
select product_id, on_hand, warehouse from pool;

-- name: script_append_then_read
insert into archived_orders select order_id, status, amount, customer_id, ordered_on from orders where status = 'sent';
create table report as select status, count(*) as n, sum(amount) as total from archived_orders group by status;

-- name: script_update_existing_then_read
update products set price = cost * 2 where category = 'office';
select product_id, price from products where price > 10;

-- name: script_renamed_existing_table
alter table deliveries rename to arrivals;
select product_id, max(arrived) as top from arrivals group by product_id;
