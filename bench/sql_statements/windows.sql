-- Window functions and QUALIFY.

-- name: row_number
select order_id, row_number() over (partition by customer_id order by ordered_on, order_id) as nth
from orders;

-- name: rank_and_ntile
select employee_id, rank() over (order by salary desc) as rank_,
    ntile(4) over (order by hired_on, employee_id) as quarter
from employees;

-- name: running_total
select order_id, sum(amount) over (partition by channel order by order_id) as running from orders;

-- name: moving_average
select visit_id, avg(seconds) over (order by visited_at, visit_id rows between 2 preceding and current row)
    as recent
from visits;

-- name: lag_and_lead
select order_id,
    lag(amount) over (partition by customer_id order by order_id) as before,
    lead(ordered_on, 1, ordered_on) over (order by order_id) as next
from orders;

-- name: lag_with_default_column
select employee_id, lag(salary, 1, employee_id) over (order by employee_id) as before from employees;

-- name: first_and_last_value
select visit_id,
    first_value(page) over w as entry,
    last_value(page) over (partition by customer_id order by visited_at, visit_id
        rows between unbounded preceding and unbounded following) as exit
from visits
window w as (partition by customer_id order by visited_at, visit_id);

-- name: named_window_shared
select order_id, count(*) over w as n, max(amount) over w as top from orders
window w as (partition by channel);

-- name: named_window_extended
select order_id, sum(amount) over (w order by order_id) as running from orders
window w as (partition by status);

-- name: window_over_everything
select order_id, amount / sum(amount) over () as share from orders;

-- name: window_range_frame
select order_id, count(*) over (order by ordered_on range between interval 30 day preceding and current row)
    as recent
from orders;

-- name: window_filter
select order_id, count(*) filter (where status = 'paid') over (partition by customer_id) as paid from orders;

-- name: window_ignore_nulls
select order_id, last_value(discount ignore nulls) over (order by order_id) as last_known from orders;

-- name: window_in_expression
select employee_id, salary - avg(salary) over (partition by department) as above from employees;

-- name: window_over_aggregate
select customer_id, sum(amount) as total, rank() over (order by sum(amount) desc) as place
from orders group by customer_id;

-- name: qualify
select order_id, customer_id, amount from orders
qualify row_number() over (partition by customer_id order by amount desc, order_id) = 1;

-- name: qualify_on_alias
select visit_id, rank() over (partition by page order by seconds desc) as place from visits qualify place <= 2;

-- name: filter_on_window_in_subquery
select customer_id, order_id from (
    select *, row_number() over (partition by customer_id order by ordered_on desc, order_id) as nth
    from orders
) t where nth = 1;

-- name: window_deduplicated_join
select p.title, t.on_hand from products p join (
    select product_id, on_hand, row_number() over (partition by product_id order by counted_on desc, warehouse) as n
    from stock
) t on t.product_id = p.product_id and t.n = 1;

-- name: cume_dist
select employee_id, round(cume_dist() over (partition by department order by salary), 6) as share
from employees;

-- name: string_agg_window
select employee_id, string_agg(name, '>') over (partition by department order by employee_id) as line
from employees;

-- name: qualify_with_named_window
select visit_id, page from visits
window w as (partition by customer_id order by visited_at desc, visit_id) qualify row_number() over w = 1;

-- name: window_named_after_another
select order_id, rank() over b as place from orders
window a as (partition by channel), b as (a order by amount desc);

-- name: window_of_case
select order_id, sum(case when status = 'paid' then amount else 0 end) over (partition by customer_id) as paid from orders;

-- name: window_of_window_in_cte
with t as (select customer_id, amount, row_number() over (partition by customer_id order by order_id) as nth from orders)
select customer_id, sum(amount) over (partition by nth) as of_nth from t;

-- name: nth_value_and_frame_by_expression
select employee_id, nth_value(name, 2) over (partition by department order by salary desc, employee_id
    rows between unbounded preceding and unbounded following) as second
from employees;

-- name: window_exclude
select employee_id, sum(salary) over (partition by department order by employee_id
    rows between unbounded preceding and unbounded following exclude current row) as others
from employees;

-- name: sessions
select visit_id, sum(starts) over (partition by customer_id order by visited_at, visit_id) as session
from (select *, case when visited_at - lag(visited_at) over (partition by customer_id order by visited_at, visit_id)
        > interval 3 day then 1 else 0 end as starts from visits) t;
