-- Few nodes are forgotten or dropped, and every load of the graph asks which.
CREATE INDEX facets_deleted ON facets (node) WHERE name = 'downriver_deleted';
CREATE INDEX facets_lifecycle ON facets (node) WHERE name = 'lifecycleStateChange';
