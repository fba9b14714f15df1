-- Seldom seen, and so easily forgotten.

-- name: in_list_column
select customer_id, 'vip' in tags as vip from customers;

-- name: in_list_column_filter
select name from customers where 'late' in tags;

-- name: contains_operator
select customer_id, tags @> ['vip'] as vip, tags && ['gift', 'new'] as any_of from customers;

-- name: star_like
select * like 'q%' from targets;

-- name: method_chain
select name.upper().length() as n, email.split_part('@', 1).upper() as box from customers;

-- name: list_of_structs_unnested
select s.a, s.b from (select unnest([{'a': q1, 'b': q2}, {'a': q3, 'b': q4}]) as s from targets) t;

-- name: struct_extract_built
select struct_extract(p, 'money') as money from (select {'money': amount, 'state': status} as p from orders) t;

-- name: lambda_with_index
select product_id, list_transform(ratings, lambda r, i: r * i + cost) as moved from products;

-- name: from_first_exists
select name from customers c where exists (from orders o where o.customer_id = c.customer_id and o.amount > 200);

-- name: implicit_lateral
select c.name, x.top from customers c, (select max(amount) as top from orders o where o.customer_id = c.customer_id) x;

-- name: whole_row_subquery_field
select c.name, (select o from orders o where o.customer_id = c.customer_id order by o.order_id limit 1).amount as first_amount from customers c;

-- name: distinct_count_of_row
select country, count(distinct (city, segment)) as n from customers group by country;

-- name: grouping_id
select channel, status, grouping_id(channel, status) as g, count(*) as n from orders group by rollup (channel, status);

-- name: cube_of_pairs
select country, segment, city, count(*) as n from customers group by cube ((country, segment), city);

-- name: update_alias_cte
with t as (select customer_id, sum(amount) as total from orders group by 1)
update customers as c set credit = t.total::integer from t where t.customer_id = c.customer_id and c.segment = 'retail';

-- name: delete_with_cte
with t as (select product_id from items where quantity > 7) delete from products where product_id in (select product_id from t);

-- name: merge_update_by_name
merge into stock as t using (select product_id, warehouse, arrived as on_hand, 1 as reserved, arrived_on as counted_on from deliveries) as d
on t.product_id = d.product_id and t.warehouse = d.warehouse
when matched then update
when not matched then insert;

-- name: on_conflict_where
create table best (customer_id integer primary key, amount decimal(12, 2), status varchar);
insert into best select customer_id, min(amount), min(status) from orders where customer_id is not null group by 1;
insert into best select customer_id, max(amount), 'old' from archived_orders where customer_id is not null group by 1
    on conflict (customer_id) do update set amount = excluded.amount where excluded.amount > best.amount and best.status = 'paid';

-- name: temp_view
create temp view v as select customer_id, amount from orders where status = 'paid';
create or replace temp table w as select customer_id, sum(amount) as s from v group by 1;
create table z as select c.city, w.s from w join customers c using (customer_id);

-- name: order_by_columns
select country, q1 from targets order by columns(*);

-- name: order_by_expression_of_alias
select order_id, amount * 2 as d from orders order by d + order_id, order_id;

-- name: window_partition_by_alias_expression
select order_id, upper(status) as s, count(*) over (partition by s) as n from orders;

-- name: window_groups_frame
select employee_id, sum(salary) over (order by hired_on groups between 1 preceding and current row) as recent from employees;

-- name: recursive_using_key
with recursive t (employee_id, boss, depth) using key (employee_id) as (
  select employee_id, manager_id, 0 from employees
  union select t.employee_id, e.manager_id, t.depth + 1 from t join employees e on e.employee_id = t.boss where t.depth < 3)
select employee_id, boss, depth from t;

-- name: asof_using
select product_id, o.arrived_on, p.list_price from (select product_id, arrived_on, arrived_on as valid_from from deliveries) o asof join prices p using (product_id, valid_from);

-- name: case_subject_subquery
select t.country, case (select max(segment) from customers c where c.country = t.country) when 'school' then q1 else q2 end as v from targets t;

-- name: values_lateral
select t.country, v.k, v.x from targets t, lateral (values ('a', t.q1), ('b', t.q2)) as v (k, x);

-- name: interval_arithmetic
select order_id, ordered_on + to_days(cast(discount as integer)) as due, age(timestamp '2024-12-01', ordered_on) as a from orders;

-- name: nested_list_comp
select product_id, [[x + y for x in ratings] for y in ratings if y > cost / 10] as grid from products;

-- name: string_slices
select customer_id, name[1:3] as start, name[-2] as nearly_last, tags[1:2] as two from customers;

-- name: filter_struct_list
select product_id, list_filter([{'a': price, 'b': cost}], lambda s: s.b > 10) as l from products;

-- name: union_type_promotion
select order_id as v, null as w from orders union all select null, status from archived_orders;

-- name: limit_offset_expr
select order_id from orders order by order_id limit (select max(line_no) from items) offset (select min(quantity) from items);

-- name: distinct_on_position
select distinct on (channel) channel, order_id from orders order by channel, amount desc, order_id;

-- name: having_only_group_key
select country from customers group by country having country > 'F' and count(*) > 3;

-- name: is_operators
select order_id, (amount > 100) is true as t, (discount > 5) is not false as f from orders;

-- name: collate_compare
select customer_id from customers where city collate nocase = 'paris';

-- name: json_keys_and_type
select product_id, json_keys(attributes) as ks, json_type(attributes, '$.weight') as ty, attributes.color as c from products;

-- name: json_transform
select product_id, from_json(attributes, '{"weight": "INTEGER"}').weight as w from products;

-- name: cte_chain_union_recursive_name_reuse
with a as (select order_id, amount from orders), b as (select * from a union all select order_id, amount from archived_orders), a2 as (select max(amount) as m from b) select b.order_id from b, a2 where b.amount = a2.m;

-- name: exists_with_group
select c.name from customers c where exists (select o.channel from orders o where o.customer_id = c.customer_id group by o.channel having count(*) > 1);

-- name: agg_in_order_by_limit
select segment from customers group by segment order by max(credit) desc, segment limit 2;

-- name: first_last_agg
select customer_id, first(status order by ordered_on, order_id) as f, last(amount order by ordered_on, order_id) as l, arg_min(channel, (ordered_on, order_id)) as c from orders group by customer_id;

-- name: approx_and_bits
select country, bit_or(credit) as b, product(1 + credit / 1000) as p, sum(distinct credit) as s from customers group by country;

-- name: histogram_map
select segment, map_keys(histogram(country)) as k from customers group by segment;

-- name: tablesample_all
select order_id from orders tablesample 100%;

-- name: set_op_limit_inside
(select order_id from orders order by amount desc, order_id limit 3) union all (select order_id from archived_orders order by amount, order_id limit 2);

-- name: update_from_two
update orders set note = c.city || p.title from customers c, products p where c.customer_id = orders.customer_id and p.product_id = orders.order_id - 100;

-- name: create_or_replace_from_itself
create table t as select order_id, amount from orders;
create or replace table t as select order_id, amount * 2 as amount from t where amount > 50;

-- name: insert_values_rows
create table l (a integer, b varchar);
insert into l (b, a) values ('x', (select count(*) from orders where status = 'void')), ((select max(city) from customers), 3);

-- name: view_column_list_star
create view v (a, b, c, d) as select * from deliveries;
select b, sum(c) as s from v group by b;

-- name: columns_exclude_agg
select segment, max(columns(['credit', 'name'])) from customers group by segment;

-- name: pivot_expr
pivot (select status, extract(month from ordered_on) > 6 as late, amount from orders) on late in (true, false) using sum(amount);

-- name: correlated_window
select c.customer_id, (select max(r) from (select rank() over (order by o.amount) as r, o.customer_id as k from orders o) x where x.k = c.customer_id) as best from customers c;

-- name: lateral_unnest_filter
select c.customer_id, t.x from customers c, lateral (select unnest(c.tags) as x) t where t.x <> 'vip';

-- name: struct_star_exclude
select p.* exclude (b) from (select {'a': q1, 'b': q2, 'c': q3} as p from targets) t;

-- name: unnest_struct_rename
select unnest({'k': country, 'v': q1}) from targets;

-- name: coalesce_columns
select country, coalesce(*columns(['q4', 'q3', 'q2'])) as first_known from targets;

-- name: ignore_alias_case
select Order_ID as "ID", AMOUNT from ORDERS where "Status" = 'paid';
