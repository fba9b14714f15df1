"""The words of the grammar that are not verbs."""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text: a list that reads like one."""
    return frozenset(text.split())


# What may stand before a name and says nothing about it.
DETERMINERS = word_set(
    """
    a an the our my their its your this that these those some all every each both new existing
    following same another any"""
)
# Words that cannot be part of a name: a phrase that holds one is more than a name.
FUNCTION_WORDS = word_set(
    """
    into onto to from by which that who is are was were be been being has have had it they them
    then when where if because not no never maybe perhaps should would could can will may might must
    and or but also with without on at for as via using through than while until after before so
    what why how does do did you i he she us there here about between against per
    probably likely possibly sometimes somehow unlike except instead rather despite excluding like
    only writes reads feeds goes sends get gets got"""
)
# Nouns that say what data is like, not where it is.
CONTENTS = word_set(
    """
    data record records row rows event events message messages file files export exports dump
    dumps extract extracts log logs result results output outputs content contents entry entries
    information info stuff payload payloads webhook webhooks change changes update updates
    snapshot snapshots feed feeds batch batches metric metrics stream streams everything"""
)
# Where data is kept, said so vaguely that it is no name.
PLACES = word_set(
    "warehouse lake lakehouse storage cloud database db somewhere here management everyone"
)
# What a name is called after tells what kind of thing it is.
KINDS = {
    "table": "table", "tables": "table", "view": "view", "dataset": "table", "api": "api",
    "apis": "api", "endpoint": "api", "service": "api", "database": "api", "db": "api",
    "system": "api", "platform": "api", "app": "api", "application": "api", "server": "api",
    "topic": "topic", "queue": "topic", "stream": "stream", "model": "model", "models": "model",
    "classifier": "model", "dashboard": "dashboard", "report": "report", "file": "file",
    "spreadsheet": "file", "sheet": "file", "bucket": "file", "feature": "feature",
}  # fmt: skip
# Where data comes from that people call by name.
SYSTEMS = word_set(
    """
    stripe salesforce hubspot shopify zendesk marketo segment netsuite workday jira github
    gitlab mailchimp braintree paypal adyen square quickbooks xero intercom amplitude mixpanel
    postgres postgresql mysql mariadb oracle mongodb mongo dynamodb cassandra redis elasticsearch
    kafka kinesis pubsub rabbitmq sap crm erp pos cms snowplow twilio sendgrid airtable notion
    greenhouse facebook google appsflyer adjust magento woocommerce sqlserver db2 teradata
    salesforce.com ga4 s3 gcs sftp ftp zuora chargebee recurly pipedrive freshdesk
    snowflake bigquery redshift looker tableau powerbi metabase superset"""
)
# What moves data and is no data itself.
TOOLS = word_set(
    """
    airflow dbt fivetran airbyte spark pyspark dagster prefect stitch meltano glue beam flink
    nifi talend informatica matillion cron python pandas sqlmesh databricks luigi debezium we
    hightouch census singer embulk sqoop lambda"""
)
TOOL_NOUNS = word_set(
    """
    job jobs script scripts dag dags task tasks process processes pipeline pipelines workflow
    workflows function notebook etl elt sync loader worker crawler consumer connector team
    engineer engineers transformation query macro step cronjob
    procedure"""
)
TYPES = (
    "table", "view", "dbt_model", "file", "topic", "model", "dashboard", "api", "feature", "stream",
    "report", "dataset",
)  # fmt: skip
JOB_TYPES = ("job", "dag", "task", "spark_job", "script", "pipeline", "function")

TYPED = re.compile(rf"(?:{'|'.join((*TYPES, *JOB_TYPES))}):[^\s,;]*[^\s,;.:]", re.IGNORECASE)
URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s,;]+", re.IGNORECASE)
IDENTIFIER = re.compile(r"[A-Za-z_$#][\w$#]*(?:[./-][\w*$#-]+)*")
FILE_ENDINGS = (".csv", ".parquet", ".json", ".jsonl", ".avro", ".orc", ".xlsx", ".txt", ".tsv")

# Inside quotes a space is part of the name; this stands for it until the name is read.
QUOTED_SPACE = "\ue000"
QUOTE_MARK = "\ue001"  # put before what was quoted: it is a name, however plain


def unquoted(text: str) -> str:
    """Return a text as it was written, without the marks of quoted names."""
    return text.replace(QUOTE_MARK, "").replace(QUOTED_SPACE, " ")


def is_marked(word: str) -> bool:
    """Tell whether a word can only be a name: quoted, or with an underscore, dot or digit."""
    if word.startswith(QUOTE_MARK):
        return True
    return bool(IDENTIFIER.fullmatch(word)) and bool(re.search(r"[_.\d$#/]", word))
