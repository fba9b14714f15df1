-- What one SELECT makes of its columns: expressions, conditions, stars, structs, lists, JSON.

-- name: plain_columns_and_literals
select order_id, amount as total, 'eur' as currency, amount * 2 - coalesce(discount, 0) as net
from orders;

-- name: case_searched
select
    order_id,
    case when status = 'paid' then amount when channel = 'web' then discount else 0 end as booked
from orders;

-- name: case_simple
select visit_id, case page when 'pay' then seconds when 'cart' then -seconds end as weight from visits;

-- name: nested_case_in_arithmetic
select
    customer_id,
    credit + case when country = 'FR' then case segment when 'retail' then 10 else 20 end else 0 end
        as limit_
from customers;

-- name: if_function
select order_id, if(discount is null, amount, amount - discount) as payable from orders;

-- name: coalesce_nullif
select
    order_id,
    coalesce(note, channel, 'none') as remark,
    nullif(status, 'void') as live_status,
    ifnull(discount, 0) as discount
from orders;

-- name: greatest_and_least
select country, greatest(q1, q2) as best, least(q3, q4, 100) as worst from targets;

-- name: casts_and_dates
select
    order_id::varchar as code,
    cast(ordered_on as timestamp) as at,
    extract(month from ordered_on) as month,
    date_trunc('month', ordered_on) as first_day,
    ordered_on + interval 3 day as due
from orders;

-- name: strings
select
    customer_id,
    upper(name) || ' <' || email || '>' as address,
    split_part(email, '@', 1) as mailbox,
    regexp_replace(city, '[aeiou]', '*', 'g') as vowelless,
    length(country) as letters,
    name like 'A%' as starts_with_a
from customers;

-- name: boolean_expressions
select
    order_id,
    amount > 100 and channel = 'web' as large_web,
    status in ('paid', 'sent') as done,
    amount between 20 and 80 as medium,
    note is not null as has_note,
    not (status = 'void') as live
from orders;

-- name: hashes
select customer_id, md5(email) as mail_hash, sha256(name || city) as who from customers;

-- name: star
select * from products;

-- name: star_exclude
select * exclude (tags, credit) from customers;

-- name: star_replace
select * replace (amount * 100 as amount, upper(status) as status) from orders;

-- name: star_rename
select * rename (q1 as first, q2 as second) from targets;

-- name: star_exclude_and_replace
select * exclude (note) replace (coalesce(discount, amount / 10) as discount) from orders;

-- name: star_of_one_side
select o.*, c.city from orders o join customers c on c.customer_id = o.customer_id;

-- name: star_of_both_sides
select * from stock s, deliveries d where s.product_id = d.product_id and s.on_hand < d.arrived + 30;

-- name: star_with_more_columns
select *, q1 + q2 as half, q3 + q4 as other_half from targets;

-- name: columns_by_pattern_written_out
select columns('q[12]') from targets;

-- name: lateral_column_alias
select
    order_id,
    amount - coalesce(discount, 0) as net,
    net * 0.2 as tax,
    net + tax as gross
from orders;

-- name: lateral_column_alias_in_where
select order_id, amount * 2 as doubled from orders where doubled > 200;

-- name: alias_that_hides_a_column
select order_id, status as channel, channel as status from orders where status = 'paid';

-- name: struct_field
select product_id, size.width as width, size['height'] as height from products;

-- name: struct_built_then_projected
select packed.code, packed.city
from (select {'code': customer_id, 'city': city, 'credit': credit} as packed from customers) t;

-- name: struct_built_then_kept
select customer_id, {'where': city, 'credit': credit} as packed from customers;

-- name: struct_pack_then_projected
select (p).margin as margin, p.title as title
from (select struct_pack(margin := price - cost, title := title) as p from products) t;

-- name: struct_within_struct
select deep.outer_.a as a, deep.b as b
from (select {'outer_': {'a': q1, 'z': q2}, 'b': q3} as deep from targets) t;

-- name: struct_star
select s.* from (select {'a': order_id, 'b': status} as s from orders) t;

-- name: row_built_by_function
select product_id, row(title, category) as pair from products;

-- name: json_paths
select
    product_id,
    attributes ->> 'color' as color,
    (attributes -> 'parts' -> 0 ->> 'code') as first_part,
    json_extract_string(attributes, '$.weight') as weight
from products;

-- name: json_path_in_filter
select title from products where cast(attributes ->> '$.weight' as integer) > 15;

-- name: json_built
select customer_id, json_object('name', name, 'city', city) as doc from customers;

-- name: list_functions
select
    customer_id,
    len(tags) as n_tags,
    list_contains(tags, 'vip') as is_vip,
    tags[1] as first_tag,
    array_to_string(list_sort(tags), ',') as joined
from customers;

-- name: list_built
select country, [q1, q2, q3] as quarters, [q1, q2][2] as second from targets;

-- name: list_comprehension
select product_id, [r * 2 for r in ratings if r > 2] as doubled from products;

-- name: list_comprehension_with_outer_column
select product_id, [r + product_id for r in ratings] as moved from products;

-- name: lambda_transform
select product_id, list_transform(ratings, lambda r: r + cost) as moved from products;

-- name: lambda_filter
select product_id, list_filter(ratings, lambda r: r > price / 20) as high from products;

-- name: lambda_reduce
select product_id, list_reduce(list_append(ratings, 0), lambda a, b: a + b) as total from products;

-- name: map_built
select customer_id, map {'city': city, 'country': country} as places from customers;

-- name: map_entry
select customer_id, map {'city': city, 'country': country}['city'] as place from customers;

-- name: nested_function_calls
select order_id, round(greatest(amount, coalesce(discount, 0) * 10) / 3, 1) as figure from orders;

-- name: values_list
select v.code, v.label from (values ('FR', 'France'), ('IT', 'Italy')) as v (code, label);

-- name: values_joined
select c.customer_id, v.label, v.vat * c.credit as vat
from customers c join (values ('FR', 'France', 20), ('IT', 'Italy', 22)) as v (code, label, vat)
    on v.code = c.country;

-- name: from_first
from orders select order_id, amount where status = 'open';

-- name: from_only
from deliveries;

-- name: quoted_identifiers
select "order_id" as "Order Id", "amount" as "select" from "orders" as "O" where "O"."status" = 'paid';

-- name: case_folded_identifiers
select O.ORDER_ID as Id, O.Amount from Orders o where STATUS <> 'void';

-- name: table_alias_columns
select t.a, t.c from targets as t (a, b, c, d, e) where t.b > 100;

-- name: whole_row
select d as row_ from deliveries d where arrived > 10;

-- name: count_of_whole_row
select count(d) as n from deliveries d;

-- name: constant_only
select 1 as one, 'x' as letter from orders where amount > 100;

-- name: comment_and_string_that_look_like_sql
select order_id, 'select note from orders' as text -- , channel
from orders /* where status = 'paid' */ where amount > 50;

-- name: columns_in_expression
select country, columns('q[34]') + q1 from targets;

-- name: aggregate_of_every_column
select max(columns(* exclude (country))) from targets;

-- name: columns_by_list
select columns(['q2', 'country']) from targets;

-- name: lambda_parameter_named_like_a_column
select product_id, list_transform(ratings, lambda price: price + 1) as moved from products;

-- name: lambda_within_lambda
select product_id, list_transform(ratings, lambda r: list_transform([cost], lambda c: c * r)) as grid
from products;

-- name: star_of_alias_without_columns
select c.* exclude (tags, email), o.order_id
from customers c join orders o on o.customer_id = c.customer_id;

-- name: star_of_struct_column_kept
select t.* from (select country, {'a': q1, 'b': q2} as pair from targets) t;

-- name: struct_through_cte_and_star
with packed as (select order_id, {'money': amount, 'state': status} as p from orders),
    kept as (select * exclude (order_id) from packed)
select p.money as money from kept;

-- name: struct_field_by_key
select t.p['money'] as money from (select {'money': amount, 'state': status} as p from orders) t;

-- name: struct_changed
select struct_insert(t.p, extra := channel) as p from (select {'state': status} as p, channel from orders) t;

-- name: field_of_whole_row
select t.d.arrived as arrived from (select d from deliveries d) t;

-- name: row_comparison
select product_id, (category, price) > ('home', 40) as dear from products;

-- name: distinct_from
select order_id, (discount > 5) is distinct from (amount > 100) as different from orders;

-- name: like_column
select customer_id, email like lower(left(name, 3)) || '%' as own_mail from customers;

-- name: try_cast_and_default
select product_id, coalesce(try_cast(right(title, 2) as integer), product_id * 100) as figure from products;

-- name: coalesce_of_subquery
select p.product_id, coalesce((select max(d.arrived) from deliveries d where d.product_id = p.product_id), 0) as top
from products p;

-- name: case_with_subquery_condition
select t.country, case when t.q1 > (select avg(q2) from targets) then t.q3 else t.q4 end as v from targets t;

-- name: scalar_macro
create macro net(a, d) as a - coalesce(d, 0);
select order_id, net(amount, discount) as net from orders;

-- name: date_parts_and_difference
select o.order_id, date_diff('day', c.signed_up, o.ordered_on) as days
from orders o join customers c on c.customer_id = o.customer_id;

-- name: same_name_twice
select o.customer_id, c.customer_id, v.customer_id
from orders o left join customers c on c.referrer_id = o.customer_id
    left join visits v on v.visit_id = o.order_id - 100;
