-- The path of a click behind the link's alias, empty for most. The projections that have all names, and that of referrers, get the
-- column: they are dropped, added and built again in the background. Until then reports read rows.
ALTER TABLE {{.Rows}} {{.OnCluster}} ADD COLUMN IF NOT EXISTS path LowCardinality(String) CODEC (ZSTD) AFTER campaign;

{{if .Cluster}}
ALTER TABLE clicks {{.OnCluster}} ADD COLUMN IF NOT EXISTS path LowCardinality(String) AFTER campaign;
{{end}}

-- The parts lose their old projections before new ones get the same names.
ALTER TABLE {{.Rows}} {{.OnCluster}} DROP PROJECTION IF EXISTS link_referrers SETTINGS mutations_sync = 2;
ALTER TABLE {{.Rows}} {{.OnCluster}} DROP PROJECTION IF EXISTS dimensions SETTINGS mutations_sync = 2;
ALTER TABLE {{.Rows}} {{.OnCluster}} DROP PROJECTION IF EXISTS account_rows SETTINGS mutations_sync = 2;

ALTER TABLE {{.Rows}} {{.OnCluster}} ADD PROJECTION IF NOT EXISTS link_referrers (
    SELECT link_id, toDate(clicked_at), referrer, campaign, path, sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
    GROUP BY link_id, toDate(clicked_at), referrer, campaign, path
);
ALTER TABLE {{.Rows}} {{.OnCluster}} ADD PROJECTION IF NOT EXISTS dimensions (
    SELECT account_id, toDate(clicked_at), link_id, device, browser, os, language, referrer, country, route, campaign, path,
        sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
    GROUP BY account_id, toDate(clicked_at), link_id, device, browser, os, language, referrer, country, route, campaign, path
);
ALTER TABLE {{.Rows}} {{.OnCluster}} ADD PROJECTION IF NOT EXISTS account_rows (
    SELECT account_id, clicked_at, link_id, device, browser, os, language, referrer, country, route, campaign, path, weight, visitor
    ORDER BY account_id, clicked_at
);

ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION link_referrers SETTINGS mutations_sync = 0;
ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION dimensions SETTINGS mutations_sync = 0;
ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION account_rows SETTINGS mutations_sync = 0;
