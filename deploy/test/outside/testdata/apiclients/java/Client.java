import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.AboutApi;
import org.openapitools.client.api.AnalyticsApi;
import org.openapitools.client.api.DomainsApi;
import org.openapitools.client.api.LinksApi;
import org.openapitools.client.api.WebhooksApi;
import org.openapitools.client.model.BulkChange;
import org.openapitools.client.model.BulkEdit;
import org.openapitools.client.model.BulkNames;
import org.openapitools.client.model.BulkRequest;
import org.openapitools.client.model.CreatedLink;
import org.openapitools.client.model.Delivery;
import org.openapitools.client.model.Link;
import org.openapitools.client.model.LinkEdit;
import org.openapitools.client.model.LinkName;
import org.openapitools.client.model.LinkPage;
import org.openapitools.client.model.LinkReport;
import org.openapitools.client.model.LinkRequest;
import org.openapitools.client.model.Share;
import org.openapitools.client.model.ShareRequest;
import org.openapitools.client.model.Stats;
import org.openapitools.client.model.WebhookEdit;
import org.openapitools.client.model.WebhookRequest;
import org.openapitools.client.model.WebhookSecret;

/** Uses the client that openapi-generator makes for Java. See ../../clients_test.go. */
public class Client {
    interface Call {
        Object run() throws ApiException;
    }

    static ApiClient connect(String token) {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("API_URL"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
        return client;
    }

    /** Returns the body of the error that a call must throw. */
    static JsonNode refusal(int status, Call call) throws Exception {
        try {
            call.run();
        } catch (ApiException e) {
            if (e.getCode() == status) {
                return new ObjectMapper().readTree(e.getResponseBody());
            }
            throw e;
        }
        throw new AssertionError("no status " + status);
    }

    public static void main(String[] args) throws Exception {
        ApiClient client = connect(System.getenv("API_TOKEN"));
        LinksApi links = new LinksApi(client);
        AnalyticsApi analytics = new AnalyticsApi(client);
        Map<String, Object> said = new TreeMap<>();

        CreatedLink made = links.createLink(
                new LinkRequest().longUrl("https://example.com/ä?a=b&c").customAlias(System.getenv("API_ALIAS")),
                "key-" + System.getenv("API_ALIAS"));
        said.put("hash", made.getHash());
        said.put("original_url", made.getOriginalUrl());
        said.put("year", made.getCreatedAt().getYear());

        said.put("invalid", refusal(422, () -> links.createLink(new LinkRequest().longUrl("nonsense"), null))
                .get("errors").get("long_url").size());
        said.put("unsafe", refusal(422, () -> links.createLink(new LinkRequest().longUrl("https://unsafe.example.com/"), null))
                .get("error"));

        Stats stats = analytics.linkStats("clicked", 0L).getStats();
        said.put("clicks", stats.getTotalClicks());
        said.put("day", stats.getClicksByDay().get(0).getDate().toString());
        said.put("on_day", stats.getClicksByDay().get(0).getTotal());
        said.put("desktop", stats.getDevices().get("desktop"));
        said.put("firefox", stats.getBrowsers().get("Firefox"));
        said.put("unknown", refusal(404, () -> analytics.linkStats("unknown", null)).get("error"));

        LinkReport report = analytics.linkReport(
                "clicked", null, null, null, "UTC", "day", 10, null, null, null, null, null, null, null, null);
        said.put("people", report.getTotals().getPeople());
        said.put("system", report.getOs().get(0).getName());
        said.put("most", analytics.accountReport(null, null, null, null, "UTC", "day", 10, null, null, null, null, null, null, null, null)
                .getLinks().get(0).getHash());

        LinkPage page = links.listLinks(1L, null, null, null, null, "-created_at", null);
        said.put("first", page.getData().get(0).getHash());
        said.put("active", page.getData().get(0).getIsActive());
        said.put("per_page", page.getMeta().getPerPage());

        Link edited = links.editLink(made.getHash(), new LinkEdit().title("Edited").tags(Set.of("a"))
                .expiresAt(OffsetDateTime.parse("2099-01-01T00:00:00+00:00")), null).getLink();
        said.put("bulk", links.createLinks(new BulkRequest().addLinksItem(new LinkRequest().longUrl("https://example.com/1"))
                .addLinksItem(new LinkRequest().longUrl("x")), null).getCreated());
        said.put("tagged", links.listTags(null).getData().get(0).getLinks());
        said.put("domains", new DomainsApi(client).listDomains(1L).getMeta().getTotal());
        said.put("title", edited.getTitle());
        said.put("tags", edited.getTags().size());
        said.put("expires", edited.getExpiresAt().getYear());
        links.editLink(made.getHash(), new LinkEdit().expiresAt(null), null);
        said.put("forever", links.getLink(made.getHash(), 0L).getLink().getExpiresAt() == null);
        said.put("deleted", links.deleteLink(made.getHash(), null).getSuccess());
        said.put("gone", refusal(404, () -> links.getLink(made.getHash(), null)).get("error"));
        said.put("trashed", links.listLinks(1L, null, null, null, null, null, true).getData().get(0).getDeletedAt().getYear());
        said.put("restored", links.restoreLink(made.getHash(), null).getLink().getHash());
        List<LinkName> names = List.of(new LinkName().hash(made.getHash()), new LinkName().hash("none"));
        List<BulkChange> changed = links.editLinks(
                new BulkEdit().links(names).set(new LinkEdit().title("Both")).addAddTagsItem("b"), null).getResults();
        said.put("changed", changed.get(0).getHash());
        said.put("absent", changed.get(1).getError());
        said.put("qr", links.linkQR(made.getHash(), null, "png", 512, "M", "000000", "FFFFFF", 4).length() > 100);
        said.put("removed", links.deleteLinks(new BulkNames().links(names), null).getChanged());

        Share share = analytics.createShare(new ShareRequest().hideTargets(true)).getShare();
        said.put("shared", share.getUrl().contains("/shared/"));
        said.put("hides", analytics.getShare(share.getId()).getShare().getHideTargets());
        said.put("shares", analytics.listShares(1L).getMeta().getTotal());
        said.put("unshared", analytics.deleteShare(share.getId()).getSuccess());

        WebhooksApi hooks = new WebhooksApi(client);
        WebhookSecret secret = hooks.createWebhook(new WebhookRequest().url("https://hooks.example.com/")
                .addEventsItem(WebhookRequest.EventsEnum.LINK_CREATED));
        long hook = secret.getWebhook().getId();
        said.put("rotated", !hooks.rotateWebhookSecret(hook).getSecret().equals(secret.getSecret()));
        said.put("asked", hooks.testWebhook(hook).getSuccess());
        Delivery delivery = hooks.listDeliveries(hook).getData().get(0);
        said.put("delivery", delivery.getEvent());
        said.put("resent", hooks.resendDelivery(hook, delivery.getId()).getSuccess());
        said.put("hook_off", !hooks.editWebhook(hook, new WebhookEdit().isActive(false)).getWebhook().getIsActive());
        said.put("hook_url", hooks.getWebhook(hook).getWebhook().getUrl());
        said.put("hooks", hooks.listWebhooks(1L).getMeta().getTotal());
        said.put("unhooked", hooks.deleteWebhook(hook).getSuccess());

        said.put("scopes", new AboutApi(client).getAccount().getToken().getScopes().size());
        said.put("openapi", new AboutApi(client).describe().getOpenapi());

        LinksApi stranger = new LinksApi(connect("wrong"));
        said.put("denied", refusal(401, () -> stranger.listLinks(null, null, null, null, null, null, null)).get("message"));
        new ObjectMapper().writeValue(System.out, said);
    }
}
