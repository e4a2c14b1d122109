// Uses the client that openapi-generator makes for TypeScript. See ../../clients_test.go.
import { AboutApi, AnalyticsApi, Configuration, DomainsApi, LinksApi, ResponseError, WebhooksApi } from "./generated/index.js";

const env = (globalThis as unknown as { process: { env: Record<string, string> } }).process.env;

function connect(token: string): Configuration {
  return new Configuration({ basePath: env["API_URL"]!, accessToken: token });
}

/** Returns the body of the error that a call must throw. */
async function refusal(status: number, call: () => Promise<unknown>): Promise<any> {
  try {
    await call();
  } catch (e) {
    if (e instanceof ResponseError && e.response.status === status) {
      return e.response.json();
    }
    throw e;
  }
  throw new Error(`no status ${status}`);
}

const api = connect(env["API_TOKEN"]!);
const links = new LinksApi(api);
const analytics = new AnalyticsApi(api);
const said: Record<string, unknown> = {};

const made = await links.createLink({
  linkRequest: { longUrl: "https://example.com/ä?a=b&c", customAlias: env["API_ALIAS"]! },
});
said["hash"] = made.hash;
said["original_url"] = made.originalUrl;
said["year"] = made.createdAt.getUTCFullYear();

const invalid = await refusal(422, () => links.createLink({ linkRequest: { longUrl: "nonsense" } }));
said["invalid"] = invalid.errors.long_url.length;
const unsafe = await refusal(422, () => links.createLink({ linkRequest: { longUrl: "https://unsafe.example.com/" } }));
said["unsafe"] = unsafe.error;

const { stats } = await analytics.linkStats({ hash: "clicked", domainId: 0 });
said["clicks"] = stats.totalClicks;
said["day"] = stats.clicksByDay[0]!.date.toISOString().slice(0, 10);
said["on_day"] = stats.clicksByDay[0]!.total;
said["desktop"] = stats.devices["desktop"];
said["firefox"] = stats.browsers["Firefox"];
said["unknown"] = (await refusal(404, () => analytics.linkStats({ hash: "unknown" }))).error;

const report = await analytics.linkReport({ hash: "clicked" });
said["people"] = report.totals.people;
said["system"] = report.os[0]!.name;
said["most"] = (await analytics.accountReport()).links[0]!.hash;

const page = await links.listLinks({ page: 1 });
said["first"] = page.data[0]!.hash;
said["active"] = page.data[0]!.isActive;
said["per_page"] = page.meta.perPage;

const { hash } = made;
const edited = (
  await links.editLink({ hash, linkEdit: { title: "Edited", tags: new Set(["a"]), expiresAt: new Date("2099-01-01T00:00:00Z") } })
).link;
const bulk = { links: [{ longUrl: "https://example.com/1" }, { longUrl: "x" }] };
said["bulk"] = (await links.createLinks({ bulkRequest: bulk })).created;
said["tagged"] = (await links.listTags()).data[0]!.links;
said["domains"] = (await new DomainsApi(api).listDomains()).meta.total;
said["title"] = edited.title;
said["tags"] = edited.tags.length;
said["expires"] = edited.expiresAt!.getUTCFullYear();
await links.editLink({ hash, linkEdit: { expiresAt: null } });
said["forever"] = (await links.getLink({ hash, domainId: 0 })).link.expiresAt === null;
said["deleted"] = (await links.deleteLink({ hash })).success;
said["gone"] = (await refusal(404, () => links.getLink({ hash }))).error;
said["trashed"] = (await links.listLinks({ deleted: true })).data[0]!.deletedAt!.getUTCFullYear();
said["restored"] = (await links.restoreLink({ hash })).link.hash;
const names = [{ hash }, { hash: "none" }];
const changed = (await links.editLinks({ bulkEdit: { links: names, set: { title: "Both" }, addTags: ["b"] } })).results;
said["changed"] = changed[0]!.hash;
said["absent"] = changed[1]!.error;
said["qr"] = (await links.linkQR({ hash, format: "png" })).size > 100;
said["removed"] = (await links.deleteLinks({ bulkNames: { links: names } })).changed;

const share = (await analytics.createShare({ shareRequest: { hideTargets: true } })).share;
said["shared"] = share.url!.includes("/shared/");
said["hides"] = (await analytics.getShare({ id: share.id })).share.hideTargets;
said["shares"] = (await analytics.listShares()).meta.total;
said["unshared"] = (await analytics.deleteShare({ id: share.id })).success;

const hooks = new WebhooksApi(api);
const secret = await hooks.createWebhook({ webhookRequest: { url: "https://hooks.example.com/", events: ["link.created"] } });
const { id } = secret.webhook;
said["rotated"] = (await hooks.rotateWebhookSecret({ id })).secret !== secret.secret;
said["asked"] = (await hooks.testWebhook({ id })).success;
const delivery = (await hooks.listDeliveries({ id })).data[0]!;
said["delivery"] = delivery.event;
said["resent"] = (await hooks.resendDelivery({ id, delivery: delivery.id })).success;
said["hook_off"] = !(await hooks.editWebhook({ id, webhookEdit: { isActive: false } })).webhook.isActive;
said["hook_url"] = (await hooks.getWebhook({ id })).webhook.url;
said["hooks"] = (await hooks.listWebhooks()).meta.total;
said["unhooked"] = (await hooks.deleteWebhook({ id })).success;

said["scopes"] = (await new AboutApi(api).getAccount()).token.scopes.length;
said["openapi"] = (await new AboutApi(api).describe()).openapi;

const stranger = new LinksApi(connect("wrong"));
said["denied"] = (await refusal(401, () => stranger.listLinks())).message;
console.log(JSON.stringify(said));
