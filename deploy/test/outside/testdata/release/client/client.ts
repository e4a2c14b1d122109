// Uses the package for npm that a release has. See ../../../release_clients_test.go.
import { Linkstream, LinkstreamError, type LinkReport } from "linkstream";

const env = (globalThis as unknown as { process: { env: Record<string, string> } }).process.env;
const waits: number[] = [];
const api = new Linkstream(env["API_URL"]! + "/", env["API_TOKEN"]!, { onWait: (seconds) => waits.push(seconds) });
const alias = env["API_ALIAS"]!;

const made = await api.createLink({ body: { long_url: "https://example.com/?ä=b", custom_alias: alias, tags: ["made"] } });
const edited = await api.editLink({ hash: alias, body: { title: "Edited", expires_at: null } });
let refused: unknown;
await api.createLink({ body: { long_url: "nonsense" } }).catch((error: unknown) => (refused = error));
if (!(refused instanceof LinkstreamError)) throw refused;
let unknown: unknown;
await api.getLink({ hash: "a/b c" }).catch((error: unknown) => (unknown = error));
const report: LinkReport = await api.linkReport({ hash: "clicked", interval: "hour", from: env["DAY"]!, to: env["DAY"]! });
const listed = await api.listLinks({ tag: "made", is_active: true });
const drawn = await api.linkQR({ hash: alias, format: "svg" });
await api.deleteLink({ hash: alias, domain_id: 0 });

console.log(
  JSON.stringify({
    hash: made.hash,
    title: edited.link.title,
    fields: Object.keys(refused.fields),
    status: refused.status,
    unknown: (unknown as LinkstreamError).code,
    people: report.totals.people,
    hours: report.series.length,
    listed: listed.data.length,
    svg: (await drawn.text()).startsWith("<svg"),
    left: (await api.listLinks({ tag: "made" })).data.length,
    waits,
  }),
);
