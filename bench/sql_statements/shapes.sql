-- Rows into columns and back: UNNEST, PIVOT, UNPIVOT, table functions.

-- name: unnest_in_from
select c.customer_id, t.tag from customers c, unnest(c.tags) as t (tag);

-- name: unnest_in_select
select customer_id, unnest(tags) as tag from customers;

-- name: unnest_with_left_join
select c.customer_id, t.tag from customers c left join unnest(c.tags) as t (tag) on true;

-- name: unnest_then_group
select tag, count(*) as n, sum(credit) as credit
from (select unnest(tags) as tag, credit from customers) t group by tag;

-- name: unnest_of_built_list
select country, unnest([q1, q2]) as v, unnest(['q1', 'q2']) as k from targets;

-- name: unnest_struct
select t.product_id, unnest(t.packed)
from (select product_id, {'label': title, 'margin': price - cost} as packed from products) t;

-- name: unnest_aggregated
select p.product_id, (select sum(r) from unnest(p.ratings) as t (r)) as stars from products p;

-- name: generate_series
select t.country, g.n from targets t, generate_series(1, 3) as g (n) where t.q1 > 100;

-- name: range_by_column
select i.order_id, i.line_no, r.n from items i, range(least(i.quantity, 9)) as r (n);

-- name: pivot_standard
select * from (select channel, status, amount from orders)
pivot (sum(amount) for status in ('paid', 'open'));

-- name: pivot_standard_aliased
select p.channel, p.paid_total, p.open_n
from (select channel, status, amount from orders)
pivot (sum(amount) as total, count(*) as n for status in ('paid', 'open')) as p;

-- name: pivot_simplified
pivot (select country, segment, credit from customers)
on segment in ('retail', 'school') using sum(credit);

-- name: pivot_simplified_grouped
pivot orders on channel in ('web', 'shop') using max(amount) as top group by status;

-- name: pivot_then_expression
select department, coalesce(top_2, 0) - coalesce(top_3, 0) as gap
from (select department, (salary // 1000) as band, hired_on from employees)
pivot (count(hired_on) as n, max(hired_on - date '2024-01-01') as top for band in (2 as "top", 3 as "low"))
as p (department, n_2, top_2, n_3, top_3);

-- name: unpivot_standard
select country, quarter, amount from targets unpivot (amount for quarter in (q1, q2, q3));

-- name: unpivot_simplified
unpivot targets on q1, q2 into name quarter value amount;

-- name: unpivot_include_nulls
select country, quarter, amount
from targets unpivot include nulls (amount for quarter in (q1, q2, q3, q4));

-- name: unpivot_then_group
select quarter, sum(amount) as total
from targets unpivot (amount for quarter in (q1, q2, q3, q4)) group by quarter;

-- name: json_each_row
select p.product_id, e.key, e.value from products p, json_each(p.attributes) e;

-- name: string_split_unnested
select customer_id, part from (select customer_id, unnest(string_split(name, ' ')) as part from customers) t;

-- name: pivot_two_columns
pivot (select channel, status, customer_id % 3 as third, amount from orders)
on channel in ('web', 'phone'), status in ('paid', 'sent') using sum(amount) as s, count(*) as n group by third;

-- name: pivot_without_using
pivot (select country, segment from customers) on segment in ('retail', 'school');

-- name: pivot_in_a_subquery
select t.status, t.web from (pivot orders on channel in ('web', 'shop') using sum(amount) group by status) t;

-- name: pivot_standard_grouped_columns_kept
select * from (select status, channel, customer_id % 2 as half, amount from orders)
pivot (avg(amount) for channel in ('web' as w, 'phone' as p));

-- name: unpivot_several_values
select country, half, first_, second_
from targets unpivot ((first_, second_) for half in ((q1, q2) as 'h1', (q3, q4) as 'h2'));

-- name: unpivot_by_pattern
unpivot targets on columns(* exclude (country)) into name quarter value amount;

-- name: unnest_with_ordinality
select c.customer_id, t.tag, t.nth from customers c, unnest(c.tags) with ordinality as t (tag, nth);

-- name: unnest_two_lists
select country, unnest([q1, q2]) as a, unnest([q3, q4]) as b from targets;

-- name: series_between_columns
select t.country, g.v from targets t, generate_series(0, least(t.q1, 500), 100) as g (v);

-- name: unnest_json
select p.product_id, e.value ->> 'code' as code
from products p, json_each(p.attributes -> 'parts') e;

-- name: exists_in_unnest
select customer_id from customers c where exists (select 1 from unnest(c.tags) as t (x) where t.x = 'gift');
