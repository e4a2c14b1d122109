// Uses the types that openapi-typescript makes, with openapi-fetch. See ../../clients_test.go.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.js";

const env = (globalThis as unknown as { process: { env: Record<string, string> } }).process.env;

function connect(token: string) {
  return createClient<paths>({ baseUrl: env["API_URL"]!, headers: { Authorization: `Bearer ${token}` } });
}

function must<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error("another answer than expected");
  }
  return value;
}

const api = connect(env["API_TOKEN"]!);
const said: Record<string, unknown> = {};

const made = must(
  (await api.POST("/api/v1/shorten", {
    body: { long_url: "https://example.com/ä?a=b&c", custom_alias: env["API_ALIAS"]! },
  })).data,
);
said["hash"] = made.hash;
said["original_url"] = made.original_url;
said["year"] = new Date(made.created_at).getUTCFullYear();

const invalid = must((await api.POST("/api/v1/shorten", { body: { long_url: "nonsense" } })).error);
if (!("errors" in invalid)) {
  throw new Error(invalid.message);
}
said["invalid"] = invalid.errors["long_url"]!.length;
const unsafe = must((await api.POST("/api/v1/shorten", { body: { long_url: "https://unsafe.example.com/" } })).error);
if (!("error" in unsafe)) {
  throw new Error(unsafe.message);
}
said["unsafe"] = unsafe.error;

const { stats } = must(
  (await api.GET("/api/v1/stats/{hash}", { params: { path: { hash: "clicked" }, query: { domain_id: 0 } } })).data,
);
said["clicks"] = stats.total_clicks;
said["day"] = stats.clicks_by_day[0]!.date;
said["on_day"] = stats.clicks_by_day[0]!.total;
said["desktop"] = stats.devices["desktop"];
said["firefox"] = stats.browsers["Firefox"];
const unknown = must((await api.GET("/api/v1/stats/{hash}", { params: { path: { hash: "unknown" } } })).error);
if (!("error" in unknown)) {
  throw new Error("no kind of error");
}
said["unknown"] = unknown.error;

const report = must(
  (await api.GET("/api/v1/links/{hash}/report", { params: { path: { hash: "clicked" } } })).data,
);
said["people"] = report.totals.people;
said["system"] = report.os[0]!.name;
said["most"] = must((await api.GET("/api/v1/report")).data).links[0]!.hash;

const page = must((await api.GET("/api/v1/links", { params: { query: { page: 1 } } })).data);
said["first"] = page.data[0]!.hash;
said["active"] = page.data[0]!.is_active;
said["per_page"] = page.meta.per_page;
const all = { params: { query: { format: "csv" as const } }, parseAs: "text" as const };
said["exported"] = must((await api.GET("/api/v1/export", all)).data as string | undefined).includes(made.hash);

const path = { hash: made.hash };
const edit = (body: components["schemas"]["LinkEdit"]) => api.PATCH("/api/v1/links/{hash}", { params: { path }, body });
const edited = must((await edit({ title: "Edited", tags: ["a"], expires_at: "2099-01-01T00:00:00+00:00" })).data).link;
const bulk = { links: [{ long_url: "https://example.com/1" }, { long_url: "x" }] };
said["bulk"] = must((await api.POST("/api/v1/links/bulk", { body: bulk })).data).created;
said["tagged"] = must((await api.GET("/api/v1/tags")).data).data[0]!.links;
said["domains"] = must((await api.GET("/api/v1/domains")).data).meta.total;
said["title"] = edited.title;
said["tags"] = edited.tags.length;
said["expires"] = new Date(edited.expires_at!).getUTCFullYear();
must((await edit({ expires_at: null })).data);
const link = must((await api.GET("/api/v1/links/{hash}", { params: { path, query: { domain_id: 0 } } })).data).link;
said["forever"] = link.expires_at === null;
const external = { params: { path: { hash: "ext:of-" + made.hash } } };
const put = must((await api.PUT("/api/v1/links/{hash}", { ...external, body: { long_url: "https://example.com/put" } })).data);
said["external"] = put.link.external_id === "of-" + made.hash;
must((await api.DELETE("/api/v1/links/{hash}", external)).data);
const old = { params: { path: { ...path, source: "bitly" } } };
const day = { date: "2024-01-02", clicks: 3 };
said["imported"] = must((await api.PUT("/api/v1/links/{hash}/history/{source}", { ...old, body: { days: [day] } })).data).clicks;
said["old_day"] = must((await api.GET("/api/v1/links/{hash}/history/{source}", old)).data).days[0]!.date;
said["forgotten"] = must((await api.DELETE("/api/v1/links/{hash}/history/{source}", old)).data).success;
said["deleted"] = must((await api.DELETE("/api/v1/links/{hash}", { params: { path } })).data).success;
const gone = must((await api.GET("/api/v1/links/{hash}", { params: { path } })).error);
if (!("error" in gone)) {
  throw new Error("no kind of error");
}
said["gone"] = gone.error;
const trash = must((await api.GET("/api/v1/links", { params: { query: { deleted: true } } })).data);
said["trashed"] = new Date(trash.data[0]!.deleted_at!).getUTCFullYear();
said["restored"] = must((await api.POST("/api/v1/links/{hash}/restore", { params: { path } })).data).link.hash;
const names = [path, { hash: "none" }];
const change = { links: names, set: { title: "Both" }, add_tags: ["b"] };
const changed = must((await api.POST("/api/v1/links/bulk/edit", { body: change })).data).results;
said["changed"] = changed[0]!.hash;
said["absent"] = changed[1]!.error;
const image = { params: { path, query: { format: "png" as const } }, parseAs: "blob" as const };
said["qr"] = must((await api.GET("/api/v1/links/{hash}/qr", image)).data as Blob | undefined).size > 100;
said["removed"] = must((await api.POST("/api/v1/links/bulk/delete", { body: { links: names } })).data).changed;

const share = must((await api.POST("/api/v1/shares", { body: { hide_targets: true } })).data).share;
const shared = { params: { path: { id: share.id } } };
said["shared"] = share.url!.includes("/shared/");
said["hides"] = must((await api.GET("/api/v1/shares/{id}", shared)).data).share.hide_targets;
said["shares"] = must((await api.GET("/api/v1/shares")).data).meta.total;
said["unshared"] = must((await api.DELETE("/api/v1/shares/{id}", shared)).data).success;

const request = { url: "https://hooks.example.com/", events: ["link.created" as const] };
const secret = must((await api.POST("/api/v1/webhooks", { body: request })).data);
const hook = { params: { path: { id: secret.webhook.id } } };
said["rotated"] = must((await api.POST("/api/v1/webhooks/{id}/rotate", hook)).data).secret !== secret.secret;
said["asked"] = must((await api.POST("/api/v1/webhooks/{id}/test", hook)).data).success;
const delivery = must((await api.GET("/api/v1/webhooks/{id}/deliveries", hook)).data).data[0]!;
said["delivery"] = delivery.event;
const again = { params: { path: { id: secret.webhook.id, delivery: delivery.id } } };
said["resent"] = must((await api.POST("/api/v1/webhooks/{id}/deliveries/{delivery}/resend", again)).data).success;
said["hook_off"] = !must((await api.PATCH("/api/v1/webhooks/{id}", { ...hook, body: { is_active: false } })).data).webhook.is_active;
said["hook_url"] = must((await api.GET("/api/v1/webhooks/{id}", hook)).data).webhook.url;
said["hooks"] = must((await api.GET("/api/v1/webhooks")).data).meta.total;
said["unhooked"] = must((await api.DELETE("/api/v1/webhooks/{id}", hook)).data).success;

said["scopes"] = must((await api.GET("/api/v1/account")).data).token.scopes.length;
must((await api.GET("/api/v1/metrics", { parseAs: "text" })).data);
must((await api.POST("/api/v1/mcp", { body: { jsonrpc: "2.0", id: 1, method: "tools/list" } })).data?.result);
must((await api.GET("/api/v1/docs", { parseAs: "text" })).data);
said["openapi"] = must((await api.GET("/api/v1/openapi.json")).data).openapi;

said["denied"] = must((await connect("wrong").GET("/api/v1/links")).error).message;
console.log(JSON.stringify(said));
