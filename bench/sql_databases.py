"""Small generated data for the SQL oracle: the tables of TPC-H, and those of a shop.

Values repeat and some are missing, so that joins, groups and filters have an effect.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Row: TypeAlias = tuple[Any, ...]


class Table(msgspec.Struct):
    """A table: its columns with their types, and its rows."""

    name: str
    columns: dict[str, str]
    rows: list[Row]

    def values(self, column: str) -> list[Any]:
        """Return a column's values, row by row."""
        at = list(self.columns).index(column)
        return [row[at] for row in self.rows]


class Database(msgspec.Struct):
    """Tables that statements are run on."""

    name: str
    tables: dict[str, Table]

    @property
    def schema(self) -> dict[str, list[str]]:
        """The columns of every table, as `parse_sql_lineage` takes them."""
        return {table.name: list(table.columns) for table in self.tables.values()}


def make_shop() -> Database:
    """Return the tables of a shop."""
    random_ = random.Random(7)
    tables = [
        Table(name, columns, list(rows(random_)))
        for name, columns, rows in (
            (
                "customers",
                {
                    "customer_id": "INTEGER", "name": "VARCHAR", "email": "VARCHAR",
                    "city": "VARCHAR", "country": "VARCHAR", "segment": "VARCHAR",
                    "credit": "INTEGER", "referrer_id": "INTEGER", "signed_up": "DATE",
                    "tags": "VARCHAR[]",
                },
                _customers,
            ),
            (
                "orders",
                {
                    "order_id": "INTEGER", "customer_id": "INTEGER", "status": "VARCHAR",
                    "ordered_on": "DATE", "amount": "DECIMAL(12,2)", "discount": "DECIMAL(12,2)",
                    "channel": "VARCHAR", "note": "VARCHAR",
                },
                _orders,
            ),
            (
                "archived_orders",
                {
                    "order_id": "INTEGER", "status": "VARCHAR", "amount": "DECIMAL(12,2)",
                    "customer_id": "INTEGER", "ordered_on": "DATE",
                },
                _archived_orders,
            ),
            (
                "items",
                {
                    "order_id": "INTEGER", "line_no": "INTEGER", "product_id": "INTEGER",
                    "quantity": "INTEGER", "unit_price": "DECIMAL(12,2)",
                },
                _items,
            ),
            (
                "products",
                {
                    "product_id": "INTEGER", "title": "VARCHAR", "category": "VARCHAR",
                    "price": "DECIMAL(12,2)", "cost": "DECIMAL(12,2)", "attributes": "JSON",
                    "size": "STRUCT(width INTEGER, height INTEGER)", "ratings": "INTEGER[]",
                },
                _products,
            ),
            (
                "prices",
                {"product_id": "INTEGER", "valid_from": "DATE", "list_price": "DECIMAL(12,2)"},
                _prices,
            ),
            (
                "employees",
                {
                    "employee_id": "INTEGER", "name": "VARCHAR", "manager_id": "INTEGER",
                    "department": "VARCHAR", "salary": "INTEGER", "hired_on": "DATE",
                },
                _employees,
            ),
            (
                "visits",
                {
                    "visit_id": "INTEGER", "customer_id": "INTEGER", "page": "VARCHAR",
                    "visited_at": "TIMESTAMP", "seconds": "INTEGER",
                },
                _visits,
            ),
            (
                "targets",
                {
                    "country": "VARCHAR", "q1": "INTEGER", "q2": "INTEGER", "q3": "INTEGER",
                    "q4": "INTEGER",
                },
                _targets,
            ),
            (
                "stock",
                {
                    "product_id": "INTEGER", "warehouse": "VARCHAR", "on_hand": "INTEGER",
                    "reserved": "INTEGER", "counted_on": "DATE",
                },
                _stock,
            ),
            (
                "deliveries",
                {
                    "product_id": "INTEGER", "warehouse": "VARCHAR", "arrived": "INTEGER",
                    "arrived_on": "DATE",
                },
                _deliveries,
            ),
        )
    ]  # fmt: skip
    return Database("shop", {table.name: table for table in tables})


_COUNTRIES = {"Paris": "FR", "Lyon": "FR", "Oslo": "NO", "Rome": "IT", "Turin": "IT", "Bern": "CH"}
_START = dt.date(2024, 1, 1)


def _day(random_: random.Random, every: int = 9) -> dt.date:
    return _START + dt.timedelta(days=random_.randrange(0, 330, every))  # some days twice


def _money(random_: random.Random, low_: int, high: int) -> Decimal:
    return Decimal(random_.randrange(low_ * 100, high * 100)) / 100


def _maybe(random_: random.Random, value: Any, missing: float = 0.2) -> Any:
    return None if random_.random() < missing else value


def _customers(random_: random.Random) -> Iterator[Row]:
    first = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ida", "Jon", "Kay", "Liv")
    for n in range(1, 25):
        name = f"{first[n % 12]} {'Berg' if n % 3 else 'Moss'}"
        city = random_.choice(list(_COUNTRIES))
        yield (
            n, name, _maybe(random_, f"{name.split()[0].lower()}{n}@mail.example"), city,
            _COUNTRIES[city], random_.choice(("retail", "business", "school")),
            random_.randrange(0, 9) * 100, _maybe(random_, random_.randrange(1, max(2, n)), 0.4),
            _day(random_, 40),
            random_.sample(("vip", "new", "late", "gift"), random_.randrange(0, 4)),
        )  # fmt: skip


def _orders(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 45):
        yield (
            100 + n, random_.randrange(1, 20),
            random_.choice(("paid", "paid", "open", "sent", "void")), _day(random_),
            _money(random_, 5, 300), _maybe(random_, _money(random_, 0, 20), 0.4),
            random_.choice(("web", "shop", "phone")),
            _maybe(random_, random_.choice(("rush", "gift wrap", "call first", "")), 0.5),
        )  # fmt: skip


def _archived_orders(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 19):
        order = 100 + n if n % 3 else 60 + n
        status = random_.choice(("paid", "open", "sent", "lost"))
        yield order, status, _money(random_, 5, 300), random_.randrange(1, 24), _day(random_)


def _items(random_: random.Random) -> Iterator[Row]:
    for order in range(101, 145):
        for line in range(1, random_.randrange(2, 4)):
            yield (
                order, line, random_.randrange(1, 13), random_.randrange(1, 9),
                _money(random_, 2, 60),
            )  # fmt: skip


def _products(random_: random.Random) -> Iterator[Row]:
    titles = ("pen", "lamp", "desk", "chair", "rug", "clock", "vase", "mug", "bag", "book", "ink")
    for n in range(1, 15):
        attributes = {
            "color": random_.choice(("red", "blue", "green")),
            "weight": random_.randrange(1, 40),
            "parts": [{"code": f"c{random_.randrange(1, 6)}"} for _ in range(2)],
        }
        yield (
            n, f"{titles[n % 11]} {n}", random_.choice(("office", "home", "gift")),
            _money(random_, 5, 80), _maybe(random_, _money(random_, 1, 40), 0.15),
            json.dumps(attributes),
            {"width": random_.randrange(1, 50), "height": random_.randrange(1, 50)},
            [random_.randrange(1, 6) for _ in range(random_.randrange(0, 4))],
        )  # fmt: skip


def _prices(random_: random.Random) -> Iterator[Row]:
    days = random_.sample(range(300), 36)
    for n, day in enumerate(days):
        yield 1 + n % 12, _START + dt.timedelta(days=day - 40), _money(random_, 5, 80)


def _employees(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 17):
        yield (
            n, f"E{n:02}", None if n == 1 else random_.randrange(1, n),
            random_.choice(("sales", "tech", "care")), 2000 + random_.randrange(0, 30) * 100,
            _day(random_, 60),
        )  # fmt: skip


def _visits(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 51):
        at = dt.datetime(2024, 3, 1) + dt.timedelta(days=random_.randrange(12))
        page = random_.choice(("home", "cart", "pay", "help"))
        yield n, random_.randrange(1, 16), page, at, _maybe(random_, random_.randrange(1, 400), 0.1)


def _targets(random_: random.Random) -> Iterator[Row]:
    for country in ("FR", "NO", "IT", "CH", "DE", "SE"):
        yield country, *(_maybe(random_, random_.randrange(1, 90) * 10, 0.1) for _ in range(4))


def _stock(random_: random.Random) -> Iterator[Row]:
    for product in range(1, 13):
        for warehouse in random_.sample(("north", "south", "east"), 2):
            yield (
                product, warehouse, random_.randrange(0, 60), random_.randrange(0, 12),
                _day(random_),
            )  # fmt: skip


def _deliveries(random_: random.Random) -> Iterator[Row]:
    pairs = [(p, w) for p in range(1, 16) for w in ("north", "south", "east")]
    for product, warehouse in random_.sample(pairs, 18):
        yield product, warehouse, random_.randrange(0, 30), _day(random_)


# The tables of TPC-H, with a few rows each, chosen so that every query returns some.

_NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0),
    ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4),
    ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1),
    ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
_TRADING = (2, 3, 6, 6, 7, 7, 8, 20, 20)  # nations of customers and suppliers


def make_tpch() -> Database:
    """Return small tables of TPC-H."""
    random_ = random.Random(11)
    orders = list(_tpch_orders(random_))
    partsupp = list(_tpch_partsupp(random_))
    made: list[tuple[str, dict[str, str], list[Row]]] = [
        (
            "region",
            {"r_regionkey": "INTEGER", "r_name": "VARCHAR", "r_comment": "VARCHAR"},
            [
                (n, name, f"region {n}")
                for n, name in enumerate(("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"))
            ],
        ),
        (
            "nation",
            {
                "n_nationkey": "INTEGER", "n_name": "VARCHAR", "n_regionkey": "INTEGER",
                "n_comment": "VARCHAR",
            },
            [(n, name, region, f"nation {n}") for n, (name, region) in enumerate(_NATIONS)],
        ),
        (
            "supplier",
            {
                "s_suppkey": "INTEGER", "s_name": "VARCHAR", "s_address": "VARCHAR",
                "s_nationkey": "INTEGER", "s_phone": "VARCHAR", "s_acctbal": "DECIMAL(12,2)",
                "s_comment": "VARCHAR",
            },
            list(_tpch_suppliers(random_)),
        ),
        (
            "customer",
            {
                "c_custkey": "INTEGER", "c_name": "VARCHAR", "c_address": "VARCHAR",
                "c_nationkey": "INTEGER", "c_phone": "VARCHAR", "c_acctbal": "DECIMAL(12,2)",
                "c_mktsegment": "VARCHAR", "c_comment": "VARCHAR",
            },
            list(_tpch_customers(random_)),
        ),
        (
            "part",
            {
                "p_partkey": "INTEGER", "p_name": "VARCHAR", "p_mfgr": "VARCHAR",
                "p_brand": "VARCHAR", "p_type": "VARCHAR", "p_size": "INTEGER",
                "p_container": "VARCHAR", "p_retailprice": "DECIMAL(12,2)", "p_comment": "VARCHAR",
            },
            list(_tpch_parts(random_)),
        ),
        (
            "partsupp",
            {
                "ps_partkey": "INTEGER", "ps_suppkey": "INTEGER", "ps_availqty": "INTEGER",
                "ps_supplycost": "DECIMAL(12,2)", "ps_comment": "VARCHAR",
            },
            partsupp,
        ),
        (
            "orders",
            {
                "o_orderkey": "INTEGER", "o_custkey": "INTEGER", "o_orderstatus": "VARCHAR",
                "o_totalprice": "DECIMAL(12,2)", "o_orderdate": "DATE",
                "o_orderpriority": "VARCHAR", "o_clerk": "VARCHAR", "o_shippriority": "INTEGER",
                "o_comment": "VARCHAR",
            },
            orders,
        ),
        (
            "lineitem",
            {
                "l_orderkey": "INTEGER", "l_partkey": "INTEGER", "l_suppkey": "INTEGER",
                "l_linenumber": "INTEGER", "l_quantity": "DECIMAL(12,2)",
                "l_extendedprice": "DECIMAL(12,2)", "l_discount": "DECIMAL(12,2)",
                "l_tax": "DECIMAL(12,2)", "l_returnflag": "VARCHAR", "l_linestatus": "VARCHAR",
                "l_shipdate": "DATE", "l_commitdate": "DATE", "l_receiptdate": "DATE",
                "l_shipinstruct": "VARCHAR", "l_shipmode": "VARCHAR", "l_comment": "VARCHAR",
            },
            list(_tpch_lineitems(random_, orders, partsupp)),
        ),
    ]  # fmt: skip
    return Database("tpch", {name: Table(name, columns, rows) for name, columns, rows in made})


def _tpch_phone(random_: random.Random, nation: int) -> str:
    return f"{nation + 10}-{random_.randrange(100, 1000)}-{random_.randrange(1000, 10_000)}"


def _tpch_suppliers(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 13):
        nation = _TRADING[n % len(_TRADING)]
        comment = "slow Customer sometimes Complaints" if n % 6 == 0 else f"supplies {n}"
        yield (
            n, f"Supplier#{n:03}", f"street {n}", nation, _tpch_phone(random_, nation),
            _money(random_, -500, 9000), comment,
        )  # fmt: skip


def _tpch_customers(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 31):
        nation = _TRADING[random_.randrange(len(_TRADING))]
        segment = random_.choice(("BUILDING", "BUILDING", "MACHINERY"))
        yield (
            n, f"Customer#{n:03}", f"road {n}", nation, _tpch_phone(random_, nation),
            _money(random_, -900, 9000), segment, f"customer {n}",
        )  # fmt: skip


def _tpch_parts(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 25):
        maker = random_.randrange(1, 4)
        size = random_.choice((1, 4, 9, 15, 15))
        kind = random_.choice(("PROMO", "ECONOMY", "STANDARD"))
        finish = random_.choice(("ANODIZED", "BURNISHED"))
        yield (
            n, f"{random_.choice(('green', 'forest', 'forest', 'blue'))} part {n}",
            f"Manufacturer#{maker}", f"Brand#{maker}{random_.randrange(1, 3)}",
            f"{kind} {finish} {random_.choice(('BRASS', 'BRASS', 'STEEL'))}", size,
            random_.choice(("SM CASE", "SM BOX", "MED BAG", "MED BOX", "LG CASE", "LG BOX")),
            _money(random_, 900, 1100), f"part {n}",
        )  # fmt: skip


def _tpch_partsupp(random_: random.Random) -> Iterator[Row]:
    for part in range(1, 25):
        for supplier in random_.sample(range(1, 13), 3):
            yield (
                part, supplier, random_.randrange(10, 90), _money(random_, 1, 100),
                f"offer {part}/{supplier}",
            )  # fmt: skip


def _tpch_orders(random_: random.Random) -> Iterator[Row]:
    for n in range(1, 101):
        date = dt.date(1993, 1, 1) + dt.timedelta(days=random_.randrange(0, 1400))
        comment = "special packages requests" if n % 7 == 0 else f"order {n}"
        yield (
            n, random_.choice([c for c in range(1, 31) if c % 3]), random_.choice("FFO"),
            _money(random_, 1000, 4000), date,
            random_.choice(("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")),
            f"Clerk#{random_.randrange(1, 9)}", random_.randrange(0, 3), comment,
        )  # fmt: skip


def _tpch_lineitems(
    random_: random.Random, orders: list[Row], partsupp: list[Row]
) -> Iterator[Row]:
    for order in orders:
        for line in range(1, random_.randrange(2, 5)):
            part, supplier = random_.choice(partsupp)[:2]
            shipped = order[4] + dt.timedelta(days=random_.randrange(1, 120))
            committed = order[4] + dt.timedelta(days=random_.randrange(30, 110))
            received = shipped + dt.timedelta(days=random_.randrange(1, 30))
            quantity = random_.randrange(1, 51)
            yield (
                order[0], part, supplier, line, Decimal(quantity),
                quantity * _money(random_, 9, 12) * 10,
                Decimal(random_.randrange(0, 11)) / 100, Decimal(random_.randrange(0, 9)) / 100,
                random_.choice("RAN"), random_.choice("OF"), shipped, committed, received,
                random_.choice(("DELIVER IN PERSON", "DELIVER IN PERSON", "NONE")),
                random_.choice(("AIR", "AIR REG", "MAIL", "SHIP")), f"line {order[0]}/{line}",
            )  # fmt: skip


DATABASES: dict[str, Callable[[], Database]] = {"tpch": make_tpch, "shop": make_shop}
