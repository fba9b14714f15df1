-- The tables every model starts from, and the tables incremental models add to.
create table customers (customer_id integer, name varchar, email varchar, country varchar, signup_date date, referrer_id integer, is_active boolean);
insert into customers select i, 'name ' || i, 'user' || i || '@example.org', ['DE', 'FR', 'PL'][1 + i % 3], date '2024-01-01' + (i * 9)::int, nullif(i % 7, 0), i % 4 <> 0 from range(1, 31) r(i);
create table orders (order_id integer, customer_id integer, order_total decimal(10, 2), currency varchar, status varchar, ordered_at timestamp, store_id integer);
insert into orders select i, 1 + i % 30, (i * 17 % 400) + 0.5, ['EUR', 'USD'][1 + i % 2], ['paid', 'open', 'void'][1 + i % 3], timestamp '2025-01-01' + i * interval 7 hour, 1 + i % 4 from range(1, 121) r(i);
create table order_items (item_id integer, order_id integer, product_id integer, quantity integer, unit_price decimal(8, 2), discount decimal(4, 2));
insert into order_items select i, 1 + i % 120, 1 + i % 12, 1 + i % 5, (i * 13 % 90) + 1.25, (i % 4) * 0.05 from range(1, 301) r(i);
create table products (product_id integer, product_name varchar, category varchar, price decimal(8, 2), weight_kg double, tags varchar);
insert into products select i, 'product ' || i, ['toys', 'books', 'food'][1 + i % 3], i * 3 + 0.99, i / 7.0, 'a,b' || i from range(1, 13) r(i);
create table stores (store_id integer, city varchar, opened_on date, manager_id integer);
insert into stores select i, 'city ' || i, date '2020-01-01' + (i * 100)::int, i + 2 from range(1, 5) r(i);
create table payments (payment_id integer, order_id integer, amount decimal(10, 2), method varchar, paid_at timestamp);
insert into payments select i, i, (i * 17 % 400) + 0.5, ['card', 'cash', 'wire'][1 + i % 3], timestamp '2025-01-02' + i * interval 7 hour from range(1, 101) r(i);
create table events (event_id bigint, user_id integer, kind varchar, payload varchar, happened_at timestamp);
insert into events select i, 1 + i % 30, ['view', 'click', 'buy'][1 + i % 3], '{"n": ' || i || '}', timestamp '2025-02-01' + i * interval 3 minute from range(1, 201) r(i);
create table budgets (store_id integer, month date, target decimal(12, 2));
insert into budgets select 1 + i % 4, date '2025-01-01' + ((i // 4) * 31)::int, 1000 + i * 10 from range(0, 12) r(i);
create table currencies (currency varchar, rate decimal(8, 4), valid_from date);
insert into currencies values ('EUR', 1.0, date '2020-01-01'), ('USD', 0.92, date '2020-01-01');
create table audit_log (run varchar, rows_seen bigint, note varchar);

create table inc_orders (order_id integer, order_total decimal(10, 2), ordered_at timestamp);
create table inc_events (event_id bigint, user_id integer, kind varchar, payload varchar, happened_at timestamp);
create table inc_payments (payment_id integer, order_id integer, amount decimal(10, 2), method varchar, paid_at timestamp);
