#!/bin/sh
# Replaces patterns.txt, LICENSE and testdata/crawlers.txt by those of the newest release of crawler-user-agents, or of the one that
# the argument names: sh schema/enrich/programs/update.sh 1.60.0
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar xzf "$(npm pack --silent "crawler-user-agents@${1:-latest}")"
node -e '
const fs = require("fs"), [here] = process.argv.slice(1);
const read = (name) => fs.readFileSync("package/" + name, "utf8");
const { version } = JSON.parse(read("package.json"));
const all = JSON.parse(read("crawler-user-agents.json"));
// Apps of people, an app of Slack, a browser in an app and a build of Android.
const people = ["Viber", "Sogou", "Sonic", "MetaIAB Facebook", "AP3A\\.240617\\.008"];
const crawlers = all.filter((c) => !people.includes(c.pattern));
const header = `# crawler-user-agents ${version}, under the license beside this file. Written by update.sh.\n`;
const write = (name, lines) => fs.writeFileSync(`${here}/${name}`, header + [...new Set(lines)].join("\n") + "\n");
write("patterns.txt", crawlers.map((c) => c.pattern));
// One agent per pattern is enough for a test. Agents are single lines.
write("testdata/crawlers.txt", crawlers.map((c) => (c.instances || [])[0]).filter((a) => a && a === a.trim() && !a.includes("\n")));
fs.copyFileSync("package/LICENSE", `${here}/LICENSE`);
' "$here"
