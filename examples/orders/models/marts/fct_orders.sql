select
    order_id,
    customer_id,
    order_total,
    ordered_on
from {{ ref('stg_orders') }}
where status = 'completed'
