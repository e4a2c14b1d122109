"""Uses the client that openapi-generator makes for Python. See ../../clients_test.go."""

import json
import os
from datetime import datetime

import openapi_client
from openapi_client.exceptions import NotFoundException, UnauthorizedException, UnprocessableEntityException


def connect(token):
    return openapi_client.ApiClient(openapi_client.Configuration(host=os.environ["API_URL"], access_token=token))


def refusal(error, call):
    """Returns the error that a call must raise."""
    try:
        call()
    except error as e:
        return e
    raise AssertionError(f"no {error}")


api = connect(os.environ["API_TOKEN"])
links, analytics, about = openapi_client.LinksApi(api), openapi_client.AnalyticsApi(api), openapi_client.AboutApi(api)
said = {}

made = links.create_link(
    openapi_client.LinkRequest(long_url="https://example.com/ä?a=b&c", custom_alias=os.environ["API_ALIAS"]))
said["hash"], said["original_url"], said["year"] = made.hash, made.original_url, made.created_at.year

invalid = refusal(UnprocessableEntityException, lambda: links.create_link(openapi_client.LinkRequest(long_url="nonsense")))
said["invalid"] = len(invalid.data.actual_instance.errors["long_url"])
unsafe = refusal(UnprocessableEntityException,
                 lambda: links.create_link(openapi_client.LinkRequest(long_url="https://unsafe.example.com/")))
said["unsafe"] = unsafe.data.actual_instance.error

stats = analytics.link_stats("clicked", domain_id=0).stats
said["clicks"], said["day"] = stats.total_clicks, stats.clicks_by_day[0].var_date.isoformat()
said["on_day"], said["desktop"], said["firefox"] = \
    stats.clicks_by_day[0].total, stats.devices["desktop"], stats.browsers["Firefox"]
said["unknown"] = refusal(NotFoundException, lambda: analytics.link_stats("unknown")).data.error

report = analytics.link_report("clicked")
said["people"], said["system"] = report.totals.people, report.os[0].name
said["most"] = analytics.account_report().links[0].hash

page = links.list_links(page=1)
said["first"], said["active"], said["per_page"] = page.data[0].hash, page.data[0].is_active, page.meta.per_page

edited = links.edit_link(made.hash, openapi_client.LinkEdit(
    title="Edited", tags=["a"], expires_at=datetime.fromisoformat("2099-01-01T00:00:00+00:00"))).link
said["bulk"] = links.create_links(openapi_client.BulkRequest(
    links=[openapi_client.LinkRequest(long_url="https://example.com/1"), openapi_client.LinkRequest(long_url="x")])).created
said["tagged"] = links.list_tags().data[0].links
said["domains"] = openapi_client.DomainsApi(api).list_domains().meta.total
said["title"], said["tags"], said["expires"] = edited.title, len(edited.tags), edited.expires_at.year
links.edit_link(made.hash, openapi_client.LinkEdit(expires_at=None))
said["forever"] = links.get_link(made.hash, domain_id=0).link.expires_at is None
said["deleted"] = links.delete_link(made.hash).success
said["gone"] = refusal(NotFoundException, lambda: links.get_link(made.hash)).data.error
said["trashed"] = links.list_links(deleted=True).data[0].deleted_at.year
said["restored"] = links.restore_link(made.hash).link.hash
names = [openapi_client.LinkName(hash=made.hash), openapi_client.LinkName(hash="none")]
changed = links.edit_links(openapi_client.BulkEdit(links=names, set=openapi_client.LinkEdit(title="Both"), add_tags=["b"]))
said["changed"], said["absent"] = changed.results[0].hash, changed.results[1].error
said["qr"] = len(links.link_qr(made.hash, format="png")) > 100
said["removed"] = links.delete_links(openapi_client.BulkNames(links=names)).changed

share = analytics.create_share(openapi_client.ShareRequest(hide_targets=True)).share
said["shared"] = "/shared/" in share.url
said["hides"] = analytics.get_share(share.id).share.hide_targets
said["shares"] = analytics.list_shares().meta.total
said["unshared"] = analytics.delete_share(share.id).success

hooks = openapi_client.WebhooksApi(api)
secret = hooks.create_webhook(openapi_client.WebhookRequest(url="https://hooks.example.com/", events=["link.created"]))
hook = secret.webhook.id
said["rotated"] = hooks.rotate_webhook_secret(hook).secret != secret.secret
said["asked"] = hooks.test_webhook(hook).success
delivery = hooks.list_deliveries(hook).data[0]
said["delivery"] = delivery.event
said["resent"] = hooks.resend_delivery(hook, delivery.id).success
said["hook_off"] = not hooks.edit_webhook(hook, openapi_client.WebhookEdit(is_active=False)).webhook.is_active
said["hook_url"] = hooks.get_webhook(hook).webhook.url
said["hooks"] = hooks.list_webhooks().meta.total
said["unhooked"] = hooks.delete_webhook(hook).success

said["scopes"] = len(about.get_account().token.scopes)
said["openapi"] = about.describe().openapi

stranger = openapi_client.LinksApi(connect("wrong"))
said["denied"] = refusal(UnauthorizedException, lambda: stranger.list_links()).data.message
print(json.dumps(said))
