with source as (

    select
        order_id,
        customer_id,
        order_total,
        legacy_discount_code,
        status,
        ordered_at
    from {{ source('raw', 'orders') }}

)

select
    order_id,
    customer_id,
    order_total / 100.0 as order_total,
    nullif(trim(legacy_discount_code), '') as discount_code,
    lower(status) as status,
    cast(ordered_at as date) as ordered_on
from source
