"""Uses the package for pip that a release has. See ../../../release_clients_test.go."""

import json
import os
import typing

import linkstream

for name, kind in vars(linkstream).items():
    if typing.is_typeddict(kind):
        typing.get_type_hints(kind, include_extras=True)

waits: list[int] = []
api = linkstream.Linkstream(os.environ["API_URL"] + "/", os.environ["API_TOKEN"], on_wait=waits.append)
alias, day = os.environ["API_ALIAS"], os.environ["DAY"]

made = api.create_link({"long_url": "https://example.com/?ä=b", "custom_alias": alias, "tags": ["made"]})
edited = api.edit_link(alias, {"title": "Edited", "expires_at": None})
try:
    api.create_link({"long_url": "nonsense"})
except linkstream.LinkstreamError as error:
    refused = error
try:
    api.get_link("a/b c")
except linkstream.LinkstreamError as error:
    unknown = error
report = api.link_report("clicked", interval="hour", from_=day, to=day)
listed = api.list_links(tag="made", is_active=True)
with api.link_qr(alias, format="svg") as drawn:
    svg = drawn.read().startswith(b"<svg")
api.delete_link(alias, domain_id=0)

print(json.dumps({
    "hash": made["hash"], "title": edited["link"]["title"], "fields": list(refused.fields), "status": refused.status,
    "unknown": unknown.code, "people": report["totals"]["people"], "hours": len(report["series"]),
    "listed": len(listed["data"]), "svg": svg, "left": len(api.list_links(tag="made")["data"]), "waits": waits,
}))
