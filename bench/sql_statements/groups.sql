-- Aggregates and what they are grouped, filtered and ordered by.

-- name: global_aggregates
select count(*) as n, count(note) as notes, sum(amount) as total, avg(discount) as mean,
    min(ordered_on) as first, max(channel) as last
from orders;

-- name: group_by_column
select country, count(*) as n, sum(credit) as credit from customers group by country;

-- name: group_by_column_not_selected
select count(*) as n, max(salary) as top from employees group by department;

-- name: group_by_position
select channel, date_trunc('month', ordered_on) as month, sum(amount) as total from orders group by 1, 2;

-- name: group_by_alias
select extract(month from ordered_on) as month, count(*) as n from orders group by month;

-- name: group_by_expression
select count(*) as n from customers group by length(city);

-- name: group_by_all
select segment, country, sum(credit) as credit from customers group by all;

-- name: group_by_all_with_expression
select upper(segment) || '/' || country as label, avg(credit) as mean, count(*) as n
from customers group by all;

-- name: group_by_rollup
select country, segment, sum(credit) as credit from customers group by rollup (country, segment);

-- name: group_by_cube
select channel, status, count(*) as n from orders group by cube (channel, status);

-- name: group_by_grouping_sets
select channel, status, sum(amount) as total, grouping(channel) as level
from orders group by grouping sets ((channel), (status), (channel, status), ());

-- name: having
select customer_id, count(*) as n from orders group by customer_id having sum(amount) > 250 and min(channel) = 'phone';

-- name: having_on_alias
select department, avg(salary) as mean from employees group by department having mean > 3000;

-- name: distinct
select distinct city, country from customers;

-- name: distinct_on
select distinct on (customer_id) customer_id, order_id, amount
from orders order by customer_id, ordered_on desc, order_id;

-- name: distinct_of_expression
select distinct amount > 100 as large, status from orders;

-- name: count_distinct
select country, count(distinct city) as cities, count(distinct segment) as segments
from customers group by country;

-- name: filter_clause
select customer_id,
    count(*) filter (where status = 'paid') as paid,
    sum(amount) filter (where channel = 'web') as web
from orders group by customer_id;

-- name: aggregate_of_case
select country, sum(case when segment = 'retail' then credit else 0 end) as retail
from customers group by country;

-- name: ordered_aggregate
select country, string_agg(name, ', ' order by signed_up desc, customer_id) as names
from customers group by country;

-- name: list_aggregate_ordered
select customer_id, list(order_id order by amount, order_id) as by_amount from orders group by customer_id;

-- name: arg_max
select customer_id, arg_max(order_id, amount) as largest, max_by(status, ordered_on) as latest
from orders group by customer_id;

-- name: first_ordered
select department, first(name order by hired_on, employee_id) as eldest from employees group by department;

-- name: quantiles
select department, median(salary) as middle, quantile_cont(salary, 0.9) as high,
    percentile_cont(0.25) within group (order by salary) as low
from employees group by department;

-- name: statistics
select country, stddev(credit) as spread, corr(credit, customer_id) as correlation,
    covar_pop(credit, customer_id) as covariance
from customers group by country;

-- name: bool_aggregates
select customer_id, bool_and(status = 'paid') as all_paid, bool_or(discount > 10) as any_discount
from orders group by customer_id;

-- name: aggregate_of_aggregate
select avg(total) as mean, count(*) as n
from (select customer_id, sum(amount) as total from orders group by customer_id) t;

-- name: expression_of_aggregates
select country, sum(credit) / count(*) + max(length(city)) as figure from customers group by country;

-- name: group_key_in_expression
select country || ':' || count(*) as label from customers group by country;

-- name: aggregate_without_group_and_filter
select sum(seconds) as seconds from visits where page = 'home';

-- name: histogram_of_lengths
select histogram(length(name)) as lengths from customers;

-- name: order_by_limit
select order_id, amount from orders order by amount desc, order_id limit 7;

-- name: order_by_column_not_selected
select name from customers order by signed_up, customer_id;

-- name: order_by_position_and_alias
select city, credit * 2 as doubled from customers order by doubled desc, 1, customer_id limit 9;

-- name: order_by_all
select product_id, warehouse, on_hand from stock order by all;

-- name: order_by_limit_offset
select visit_id, page from visits order by visited_at, visit_id limit 5 offset 10;

-- name: limit_in_a_subquery
select sum(amount) as total from (select amount from orders order by ordered_on, order_id limit 10) t;

-- name: limit_from_a_subquery
select order_id from orders order by order_id limit (select count(*) from targets where q1 > 300);

-- name: order_in_a_subquery_without_limit
select count(*) as n from (select order_id from orders order by amount) t;

-- name: aggregate_over_join
select c.country, count(distinct o.order_id) as orders, sum(o.amount) as total
from customers c left join orders o using (customer_id)
group by c.country
order by total desc nulls last, c.country;

-- name: group_by_all_with_case
select case when amount > 100 then 'big' else 'small' end as size, count(*) as n from orders group by all;

-- name: group_by_all_over_aggregate
select t.total, count(*) as n from (select country, count(city) as total from customers group by country) t group by all;

-- name: group_by_column_and_rollup
select country, segment, count(*) as n from customers group by country, rollup (segment);

-- name: group_by_position_of_case
select case status when 'paid' then channel else 'none' end as via, sum(amount) as total from orders group by 1;

-- name: order_by_alias_that_hides_a_column
select order_id, status as channel from orders order by channel, order_id;

-- name: order_by_position_with_equal_names
select a.product_id, b.product_id, a.on_hand from stock a join deliveries b on a.warehouse = b.warehouse and a.reserved > b.arrived
order by 3, 2, 1, a.warehouse;

-- name: order_by_aggregate_not_selected
select country from customers group by country order by sum(credit) desc, country;

-- name: order_by_window
select order_id from orders order by sum(amount) over (partition by customer_id), order_id;

-- name: order_by_case
select order_id, amount from orders order by case when channel = 'web' then amount else 0 end, order_id limit 10;

-- name: distinct_ordered_and_limited
select distinct city from customers order by city limit 3;

-- name: distinct_inside_aggregate_ordered
select country, string_agg(distinct segment, '+' order by segment) as segments from customers group by country;

-- name: having_without_group
select sum(amount) as total from orders having count(discount) > 3;

-- name: having_with_subquery_on_group
select department, count(*) as n from employees e group by department
having max(salary) > (select avg(credit) * 5 from customers c where c.segment <> e.department);

-- name: aggregate_filter_and_order
select channel, list(order_id order by amount desc, order_id) filter (where status = 'paid') as best from orders group by channel;

-- name: nested_aggregates_by_cte
with t as (select customer_id, count(*) as n from orders group by 1), u as (select n, count(*) as c from t group by n)
select max(c) as most, sum(n * c) as total from u;

-- name: entropy
select segment, round(entropy(city), 6) as variety from customers where customer_id > 2 group by segment;

-- name: limit_percent
select visit_id from visits order by seconds nulls last, visit_id limit 20%;
