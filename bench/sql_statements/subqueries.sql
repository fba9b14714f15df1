-- Subqueries: scalar, correlated, EXISTS, IN, ANY, ALL, LATERAL; common table expressions.

-- name: scalar_subquery
select order_id, amount - (select avg(amount) from orders where status = 'paid') as above from orders;

-- name: correlated_scalar_subquery
select c.name, (select sum(o.amount) from orders o where o.customer_id = c.customer_id) as spent
from customers c;

-- name: correlated_by_two_columns
select d.product_id, d.warehouse,
    (select max(s.on_hand) from stock s
     where s.product_id = d.product_id and s.warehouse = d.warehouse) as on_hand
from deliveries d;

-- name: correlated_in_case
select c.customer_id,
    case when exists (select 1 from orders o where o.customer_id = c.customer_id and o.amount > 200)
        then c.credit else 0 end as allowed
from customers c;

-- name: exists_filter
select name from customers c
where exists (select 1 from visits v where v.customer_id = c.customer_id and v.page = 'pay');

-- name: not_exists_filter
select name from customers c
where not exists (select * from orders o where o.customer_id = c.customer_id and o.status = 'void');

-- name: exists_as_a_column
select p.title, exists (select 1 from items i where i.product_id = p.product_id and i.quantity > 7) as bulk
from products p;

-- name: in_subquery
select title, price from products
where product_id in (select product_id from deliveries where arrived > 15);

-- name: not_in_subquery
select title from products
where product_id not in (select product_id from items where quantity > 6);

-- name: in_subquery_as_a_column
select customer_id, customer_id in (select customer_id from orders where channel = 'phone') as phones
from customers;

-- name: row_in_subquery
select on_hand from stock
where (product_id, warehouse) in (select (product_id, warehouse) from deliveries where arrived > 3);

-- name: any_comparison
select name from employees where salary > any (select salary from employees where department = 'care');

-- name: all_comparison
select title from products where price >= all (select price from products where category = 'gift');

-- name: equals_any
select name from customers where city = any (select city from customers where credit > 600);

-- name: subquery_in_from
select t.country, t.total / t.n as mean
from (select country, sum(credit) as total, count(*) as n from customers group by country) as t
where t.n > 1;

-- name: subquery_with_renamed_columns
select t.b from (select order_id, amount from orders where channel = 'web') as t (a, b) where t.a > 110;

-- name: array_subquery
select c.name, array(select o.amount from orders o where o.customer_id = c.customer_id order by o.order_id)
    as amounts
from customers c;

-- name: subquery_of_subquery
select name from customers
where customer_id in (
    select customer_id from orders
    where order_id in (select order_id from items where product_id in
        (select product_id from products where category = 'home')));

-- name: correlated_two_levels_out
select c.name from customers c
where exists (
    select 1 from orders o
    where o.customer_id = c.customer_id
      and exists (select 1 from items i where i.order_id = o.order_id and i.quantity * 100 > c.credit));

-- name: subquery_in_order_by
select c.customer_id, c.city from customers c
order by (select count(*) from orders o where o.customer_id = c.customer_id), c.customer_id;

-- name: subquery_in_having
select customer_id, sum(amount) as total from orders group by customer_id
having sum(amount) > (select avg(credit) / 5 from customers);

-- name: lateral_subquery
select c.name, last_.amount
from customers c, lateral (
    select o.amount from orders o where o.customer_id = c.customer_id
    order by o.ordered_on desc, o.order_id limit 1
) last_;

-- name: left_join_lateral
select c.customer_id, t.n, t.top
from customers c left join lateral (
    select count(*) as n, max(amount) as top from orders o
    where o.customer_id = c.customer_id and o.amount < c.credit
) t on true;

-- name: lateral_expression
select o.order_id, x.net, y.tax
from orders o, lateral (select o.amount - coalesce(o.discount, 0) as net) x,
    lateral (select x.net * 0.2 as tax) y;

-- name: cte
with paid as (select customer_id, amount from orders where status = 'paid')
select customer_id, sum(amount) as total from paid group by customer_id;

-- name: cte_chain
with
    a as (select order_id, customer_id, amount from orders where channel <> 'phone'),
    b as (select customer_id, max(amount) as top from a group by customer_id),
    c as (select a.order_id, b.top from a join b using (customer_id))
select order_id, top from c where top > 60;

-- name: cte_used_twice
with t as (select department, avg(salary) as mean from employees group by department)
select x.department, y.department as richer from t x join t y on y.mean > x.mean;

-- name: cte_with_column_names
with t (who, what) as (select name, salary * 12 from employees)
select who, what from t where what > 40000;

-- name: cte_that_shadows_a_table
with orders as (select order_id, amount from archived_orders where status = 'paid')
select order_id, amount from orders;

-- name: cte_that_shadows_and_reads_the_table
with customers as (select customer_id, name from customers where country = 'IT')
select name from customers;

-- name: cte_inside_a_subquery
select t.n from (with x as (select count(*) as n from visits where page = 'help') select n from x) t;

-- name: cte_shadowed_further_in
with t as (select q1 as v from targets)
select v, (with t as (select max(q2) as v from targets) select v from t) as other from t;

-- name: cte_materialized
with t as materialized (select product_id, sum(quantity) as sold from items group by 1)
select p.title, t.sold from products p left join t using (product_id);

-- name: cte_unused
with unused as (select note from orders) select customer_id from customers;

-- name: recursive_cte_tree
with recursive chain (employee_id, boss, depth) as (
    select employee_id, name, 0 from employees where manager_id is null
    union all
    select e.employee_id, c.boss, c.depth + 1 from employees e join chain c on e.manager_id = c.employee_id
    where c.depth < 4
)
select employee_id, boss, depth from chain;

-- name: recursive_cte_path
with recursive up as (
    select customer_id as start, referrer_id as here, name as trail, 1 as hops
    from customers where segment = 'retail'
    union all
    select up.start, c.referrer_id, up.trail || '>' || c.city, hops + 1
    from up join customers c on c.customer_id = up.here
    where up.hops < 3
)
select start, here, trail from up;

-- name: recursive_cte_counter
with recursive n as (select 1 as i union all select i + 1 from n where i < (select least(min(line_no), 3) + 4 from items))
select i from n;

-- name: recursive_cte_swapping_columns
with recursive w (a, b, i) as (
    select q1, q2, 1 from targets
    union all
    select b, a, i + 1 from w where i < 2
)
select a, i from w;

-- name: cte_in_ctas
create table big_spenders as
with t as (select customer_id, sum(amount) as total from orders group by customer_id)
select c.name, t.total from t join customers c using (customer_id) where t.total > 150;

-- name: scalar_subquery_with_order_and_limit
select c.customer_id,
    (select o.status from orders o where o.customer_id = c.customer_id order by o.ordered_on desc, o.order_id limit 1) as latest
from customers c;

-- name: subquery_over_union
select country, (select count(*) from (select customer_id from orders union select customer_id from visits) u
    where u.customer_id > t.q1 / 50) as n
from targets t;

-- name: in_set_operation
select name from customers
where customer_id in (select customer_id from orders where amount > 150 except select customer_id from visits where page = 'help');

-- name: in_list_of_columns
select country from targets where q1 % 100 in (q2 % 100, q3 % 100) or q4 in (q1, 500);

-- name: between_subqueries
select order_id from orders where amount between (select min(price) * 4 from products) and (select max(price) from products) * 2;

-- name: exists_of_union
select c.name from customers c
where exists (select 1 from orders o where o.customer_id = c.customer_id and o.status = 'void'
    union all select 1 from visits v where v.customer_id = c.customer_id and v.seconds > 350);

-- name: exists_in_filter_clause
select count(*) filter (where exists (select 1 from deliveries d where d.product_id = p.product_id)) as delivered, count(*) as n
from products p;

-- name: lateral_aggregate_used_in_where
select c.name, t.n from customers c cross join lateral (select count(*) as n from visits v where v.customer_id = c.customer_id) t
where t.n > 2;

-- name: lateral_chain
select p.product_id, b.v from products p,
    lateral (select max(i.quantity) as top from items i where i.product_id = p.product_id) a,
    lateral (select min(d.arrived) + a.top as v from deliveries d where d.product_id = p.product_id) b;

-- name: correlated_not_in
select s.product_id, s.warehouse from stock s
where s.warehouse not in (select d.warehouse from deliveries d where d.product_id = s.product_id);

-- name: recursive_cte_with_aggregate_after
with recursive tree as (
    select employee_id as root, employee_id, salary, 0 as depth from employees where department = 'tech'
    union all
    select t.root, e.employee_id, e.salary, t.depth + 1 from employees e join tree t on e.manager_id = t.employee_id
    where t.depth < 3
)
select root, sum(salary) as cost from tree group by root;

-- name: cte_referring_to_later_scope
with a as (select country, q1 from targets), b as (with a as (select country, q2 as q1 from targets) select * from a)
select a.country, a.q1, b.q1 as other from a join b using (country);

-- name: nested_derived_tables
select x.total from (select y.total from (select z.amount * 2 as total from (select amount from orders where status = 'paid') z) y where y.total > 60) x;
