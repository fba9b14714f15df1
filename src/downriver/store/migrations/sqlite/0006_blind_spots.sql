-- The jobs with blind spots, so that those which touch no dataset are found without reading all facets.
CREATE INDEX facets_with_blind_spots ON facets (node)
    WHERE role = 0 AND name = 'downriver_blindSpots';
