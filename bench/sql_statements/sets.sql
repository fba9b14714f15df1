-- Set operations.

-- name: union_all
select order_id, amount from orders union all select order_id, amount from archived_orders;

-- name: union_all_by_position
select order_id as id, status as label from orders
union all
select product_id, title from products;

-- name: union_distinct
select status from orders union select status from archived_orders;

-- name: union_all_with_constants
select 'now' as era, order_id, amount from orders where status = 'paid'
union all
select 'then', order_id, null from archived_orders;

-- name: union_all_by_name
select order_id, status, amount from orders
union all by name
select amount, order_id, status from archived_orders;

-- name: union_by_name_with_missing_columns
select order_id, channel from orders union by name select order_id, ordered_on from archived_orders;

-- name: three_unions
select customer_id from orders where amount > 200
union all select customer_id from archived_orders where status = 'lost'
union all select customer_id from visits where page = 'help';

-- name: intersect_rows
select customer_id from orders intersect select customer_id from visits;

-- name: except_rows
select customer_id, country from customers except select customer_id, 'FR' from orders;

-- name: except_all_rows
select status, customer_id from orders except all select status, customer_id from archived_orders;

-- name: intersect_all_rows
select product_id from stock intersect all select product_id from deliveries;

-- name: union_then_aggregate
select id, sum(v) as total
from (select product_id as id, on_hand as v from stock
      union all select product_id, arrived from deliveries) t
group by id;

-- name: union_ordered_and_limited
select order_id, amount from orders union all select order_id + 1000, amount from archived_orders
order by amount desc, order_id limit 12;

-- name: union_in_a_cte
with all_orders as (
    select order_id, amount, 'live' as source from orders
    union all
    select order_id, amount, 'old' from archived_orders
)
select source, count(*) as n, max(amount) as top from all_orders group by source;

-- name: nested_set_operations
(select customer_id from orders union select customer_id from visits)
except
(select customer_id from archived_orders where amount > 50);

-- name: union_of_filtered_branches
select name from customers where credit > 400 union all select name from employees where salary > 3500;

-- name: union_ordered_by_position
select order_id, amount from orders union all select order_id + 500, amount from archived_orders order by 2, 1;

-- name: union_of_stars
select * from (select product_id, warehouse, on_hand from stock) a
union all
select * from (select product_id, warehouse, arrived from deliveries) b;

-- name: union_of_values_and_rows
select 'all' as label, null as n union all select country, q1 from targets;

-- name: mixed_chain
select customer_id from orders union all select customer_id from visits except select customer_id from archived_orders;
