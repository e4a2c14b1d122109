// Command main uses the client that oapi-codegen generates from the API's description. See ../../clients_test.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"apiclient/client"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func connect(token string) (*client.ClientWithResponses, error) {
	return client.NewClientWithResponses(os.Getenv("API_URL"), client.WithRequestEditorFn(
		func(_ context.Context, req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+token)
			return nil
		}))
}

func run(ctx context.Context) error {
	api, err := connect(os.Getenv("API_TOKEN"))
	if err != nil {
		return err
	}
	said := map[string]any{}
	for _, part := range []func(context.Context, *client.ClientWithResponses, map[string]any) error{
		create, readStats, readReports, list, putAndImport, manage, undo, share, hear, assist, describe, deny,
	} {
		if err := part(ctx, api, said); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

func create(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	alias := os.Getenv("API_ALIAS")
	key := "key-" + alias
	made, err := api.CreateLinkWithResponse(ctx, &client.CreateLinkParams{IdempotencyKey: &key},
		client.LinkRequest{LongUrl: "https://example.com/ä?a=b&c", CustomAlias: &alias})
	if err != nil || made.JSON201 == nil {
		return fmt.Errorf("create: %v, %s", err, made.GetBody())
	}
	said["hash"], said["original_url"], said["year"] = made.JSON201.Hash, made.JSON201.OriginalUrl,
		made.JSON201.CreatedAt.Year()

	invalid, err := api.CreateLinkWithResponse(ctx, nil, client.LinkRequest{LongUrl: "nonsense"})
	if err != nil || invalid.JSON422 == nil {
		return fmt.Errorf("create with an invalid URL: %v, %s", err, invalid.GetBody())
	}
	problems, err := invalid.JSON422.AsValidationFailure()
	if err != nil {
		return err
	}
	said["invalid"] = len(problems.Errors["long_url"])
	unsafe, err := api.CreateLinkWithResponse(ctx, nil, client.LinkRequest{LongUrl: "https://unsafe.example.com/"})
	if err != nil || unsafe.JSON422 == nil {
		return fmt.Errorf("create with an unsafe URL: %v, %s", err, unsafe.GetBody())
	}
	refused, err := unsafe.JSON422.AsUnsafeURLFailure()
	said["unsafe"] = refused.Error
	return err
}

func readStats(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	domain := int64(0)
	stats, err := api.LinkStatsWithResponse(ctx, "clicked", &client.LinkStatsParams{DomainId: &domain})
	if err != nil || stats.JSON200 == nil {
		return fmt.Errorf("stats: %v, %s", err, stats.GetBody())
	}
	s := stats.JSON200.Stats
	said["clicks"], said["on_day"], said["desktop"], said["firefox"] =
		s.TotalClicks, s.ClicksByDay[0].Total, s.Devices["desktop"], s.Browsers["Firefox"]
	said["day"] = s.ClicksByDay[0].Date.String()
	unknown, err := api.LinkStatsWithResponse(ctx, "unknown", nil)
	if err != nil || unknown.JSON404 == nil {
		return fmt.Errorf("stats of an unknown link: %v, %s", err, unknown.GetBody())
	}
	said["unknown"] = unknown.JSON404.Error
	return nil
}

func readReports(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	report, err := api.LinkReportWithResponse(ctx, "clicked", nil)
	if err != nil || report.JSON200 == nil {
		return fmt.Errorf("report of a link: %v, %s", err, report.GetBody())
	}
	said["people"], said["system"] = report.JSON200.Totals.People, report.JSON200.Os[0].Name
	all, err := api.AccountReportWithResponse(ctx, nil)
	if err != nil || all.JSON200 == nil {
		return fmt.Errorf("report: %v, %s", err, all.GetBody())
	}
	said["most"] = all.JSON200.Links[0].Hash
	return nil
}

func list(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	page := int64(1)
	links, err := api.ListLinksWithResponse(ctx, &client.ListLinksParams{Page: &page})
	if err != nil || links.JSON200 == nil {
		return fmt.Errorf("list: %v, %s", err, links.GetBody())
	}
	said["first"], said["active"], said["per_page"] =
		links.JSON200.Data[0].Hash, links.JSON200.Data[0].IsActive, links.JSON200.Meta.PerPage
	exported, err := api.ExportLinksWithResponse(ctx, &client.ExportLinksParams{Format: "csv"})
	if err != nil || exported.StatusCode() != http.StatusOK {
		return fmt.Errorf("export: %v, %s", err, exported.GetBody())
	}
	said["exported"] = strings.Contains(string(exported.Body), links.JSON200.Data[0].Hash)
	return nil
}

func manage(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	hash, _ := said["hash"].(string)
	title, tags, expiry := "Edited", []client.Tag{"a"}, time.Date(2099, time.January, 1, 0, 0, 0, 0, time.UTC)
	edited, err := api.EditLinkWithResponse(ctx, hash, nil,
		client.LinkEdit{Title: &title, Tags: &tags, ExpiresAt: &expiry})
	if err != nil || edited.JSON200 == nil {
		return fmt.Errorf("edit: %v, %s", err, edited.GetBody())
	}
	link := edited.JSON200.Link
	said["title"], said["tags"], said["expires"] = link.Title, len(link.Tags), link.ExpiresAt.Year()
	bulk, err := api.CreateLinksWithResponse(ctx, nil, client.BulkRequest{
		Links: []client.LinkRequest{{LongUrl: "https://example.com/1"}, {LongUrl: "x"}}})
	if err != nil || bulk.JSON200 == nil {
		return fmt.Errorf("bulk: %v, %s", err, bulk.GetBody())
	}
	said["bulk"] = bulk.JSON200.Created
	tags200, err := api.ListTagsWithResponse(ctx, nil)
	if err != nil || tags200.JSON200 == nil {
		return fmt.Errorf("tags: %v, %s", err, tags200.GetBody())
	}
	said["tagged"] = tags200.JSON200.Data[0].Links
	domains, err := api.ListDomainsWithResponse(ctx, nil)
	if err != nil || domains.JSON200 == nil {
		return fmt.Errorf("domains: %v, %s", err, domains.GetBody())
	}
	said["domains"] = domains.JSON200.Meta.Total
	forever, err := api.EditLinkWithBodyWithResponse(ctx, hash, nil, "application/json",
		strings.NewReader(`{"expires_at":null}`))
	if err != nil || forever.JSON200 == nil {
		return fmt.Errorf("edit: %v, %s", err, forever.GetBody())
	}
	domain := int64(0)
	got, err := api.GetLinkWithResponse(ctx, hash, &client.GetLinkParams{DomainId: &domain})
	if err != nil || got.JSON200 == nil {
		return fmt.Errorf("get: %v, %s", err, got.GetBody())
	}
	said["forever"] = got.JSON200.Link.ExpiresAt == nil
	deleted, err := api.DeleteLinkWithResponse(ctx, hash, nil)
	if err != nil || deleted.JSON200 == nil {
		return fmt.Errorf("delete: %v, %s", err, deleted.GetBody())
	}
	said["deleted"] = deleted.JSON200.Success
	gone, err := api.GetLinkWithResponse(ctx, hash, nil)
	if err != nil || gone.JSON404 == nil {
		return fmt.Errorf("get a deleted link: %v, %s", err, gone.GetBody())
	}
	said["gone"] = gone.JSON404.Error
	return nil
}

func undo(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	hash, _ := said["hash"].(string)
	deleted := true
	trash, err := api.ListLinksWithResponse(ctx, &client.ListLinksParams{Deleted: &deleted})
	if err != nil || trash.JSON200 == nil {
		return fmt.Errorf("list deleted links: %v, %s", err, trash.GetBody())
	}
	said["trashed"] = trash.JSON200.Data[0].DeletedAt.Year()
	restored, err := api.RestoreLinkWithResponse(ctx, hash, nil)
	if err != nil || restored.JSON200 == nil {
		return fmt.Errorf("restore: %v, %s", err, restored.GetBody())
	}
	said["restored"] = restored.JSON200.Link.Hash
	title, tags, names := "Both", []client.Tag{"b"}, []client.LinkName{{Hash: hash}, {Hash: "none"}}
	changed, err := api.EditLinksWithResponse(ctx, nil, client.BulkEdit{Links: names, Set: &client.LinkEdit{Title: &title},
		AddTags: &tags})
	if err != nil || changed.JSON200 == nil {
		return fmt.Errorf("edit links: %v, %s", err, changed.GetBody())
	}
	said["changed"], said["absent"] = changed.JSON200.Results[0].Hash, changed.JSON200.Results[1].Error
	format := client.LinkQRParamsFormat("png")
	image, err := api.LinkQRWithResponse(ctx, hash, &client.LinkQRParams{Format: &format})
	if err != nil || image.StatusCode() != http.StatusOK {
		return fmt.Errorf("draw a QR code: %v, %s", err, image.GetBody())
	}
	said["qr"] = len(image.Body) > 100
	removed, err := api.DeleteLinksWithResponse(ctx, nil, client.BulkNames{Links: names})
	if err != nil || removed.JSON200 == nil {
		return fmt.Errorf("delete links: %v, %s", err, removed.GetBody())
	}
	said["removed"] = removed.JSON200.Changed
	return nil
}

func share(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	hide := true
	made, err := api.CreateShareWithResponse(ctx, client.ShareRequest{HideTargets: &hide})
	if err != nil || made.JSON201 == nil || made.JSON201.Share.Url == nil {
		return fmt.Errorf("share a report: %v, %s", err, made.GetBody())
	}
	said["shared"] = strings.Contains(*made.JSON201.Share.Url, "/shared/")
	got, err := api.GetShareWithResponse(ctx, made.JSON201.Share.Id)
	if err != nil || got.JSON200 == nil {
		return fmt.Errorf("get it: %v, %s", err, got.GetBody())
	}
	said["hides"] = got.JSON200.Share.HideTargets
	all, err := api.ListSharesWithResponse(ctx, nil)
	if err != nil || all.JSON200 == nil {
		return fmt.Errorf("list shared reports: %v, %s", err, all.GetBody())
	}
	said["shares"] = all.JSON200.Meta.Total
	revoked, err := api.DeleteShareWithResponse(ctx, made.JSON201.Share.Id)
	if err != nil || revoked.JSON200 == nil {
		return fmt.Errorf("revoke it: %v, %s", err, revoked.GetBody())
	}
	said["unshared"] = revoked.JSON200.Success
	return nil
}

func hear(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	made, err := api.CreateWebhookWithResponse(ctx, client.WebhookRequest{
		Url: "https://hooks.example.com/", Events: []client.WebhookRequestEvents{client.WebhookRequestEventsLinkCreated}})
	if err != nil || made.JSON201 == nil {
		return fmt.Errorf("create a webhook: %v, %s", err, made.GetBody())
	}
	id := made.JSON201.Webhook.Id
	rotated, err := api.RotateWebhookSecretWithResponse(ctx, id)
	if err != nil || rotated.JSON200 == nil {
		return fmt.Errorf("rotate its secret: %v, %s", err, rotated.GetBody())
	}
	said["rotated"] = rotated.JSON200.Secret != made.JSON201.Secret
	asked, err := api.TestWebhookWithResponse(ctx, id)
	if err != nil || asked.JSON202 == nil {
		return fmt.Errorf("test it: %v, %s", err, asked.GetBody())
	}
	said["asked"] = asked.JSON202.Success
	deliveries, err := api.ListDeliveriesWithResponse(ctx, id)
	if err != nil || deliveries.JSON200 == nil {
		return fmt.Errorf("list its deliveries: %v, %s", err, deliveries.GetBody())
	}
	delivery := deliveries.JSON200.Data[0]
	said["delivery"] = delivery.Event
	resent, err := api.ResendDeliveryWithResponse(ctx, id, delivery.Id)
	if err != nil || resent.JSON202 == nil {
		return fmt.Errorf("send it again: %v, %s", err, resent.GetBody())
	}
	said["resent"] = resent.JSON202.Success
	off := false
	edited, err := api.EditWebhookWithResponse(ctx, id, client.WebhookEdit{IsActive: &off})
	if err != nil || edited.JSON200 == nil {
		return fmt.Errorf("switch it off: %v, %s", err, edited.GetBody())
	}
	said["hook_off"] = !edited.JSON200.Webhook.IsActive
	got, err := api.GetWebhookWithResponse(ctx, id)
	if err != nil || got.JSON200 == nil {
		return fmt.Errorf("get it: %v, %s", err, got.GetBody())
	}
	said["hook_url"] = got.JSON200.Webhook.Url
	all, err := api.ListWebhooksWithResponse(ctx, nil)
	if err != nil || all.JSON200 == nil {
		return fmt.Errorf("list webhooks: %v, %s", err, all.GetBody())
	}
	said["hooks"] = all.JSON200.Meta.Total
	deleted, err := api.DeleteWebhookWithResponse(ctx, id)
	if err != nil || deleted.JSON200 == nil {
		return fmt.Errorf("delete it: %v, %s", err, deleted.GetBody())
	}
	said["unhooked"] = deleted.JSON200.Success
	return nil
}

// putAndImport makes a link by an external ID, which it deletes, and imports clicks of the link that create has made.
func putAndImport(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	alias := os.Getenv("API_ALIAS")
	external := "ext:of-" + alias
	put, err := api.PutLinkWithResponse(ctx, external, nil, client.LinkRequest{LongUrl: "https://example.com/put"})
	if err != nil || put.JSON201 == nil || put.JSON201.Link.ExternalId == nil {
		return fmt.Errorf("put: %v, %s", err, put.GetBody())
	}
	said["external"] = "ext:"+*put.JSON201.Link.ExternalId == external
	if gone, err := api.DeleteLinkWithResponse(ctx, external, nil); err != nil || gone.JSON200 == nil {
		return fmt.Errorf("delete: %v, %s", err, gone.GetBody())
	}
	var day client.HistoryDay
	if err := json.Unmarshal([]byte(`{"date":"2024-01-02","clicks":3}`), &day); err != nil {
		return err
	}
	imported, err := api.SetHistoryWithResponse(ctx, alias, "bitly", nil,
		client.HistoryRequest{Days: []client.HistoryDay{day}})
	if err != nil || imported.JSON200 == nil {
		return fmt.Errorf("import clicks: %v, %s", err, imported.GetBody())
	}
	said["imported"] = imported.JSON200.Clicks
	read, err := api.GetHistoryWithResponse(ctx, alias, "bitly", nil)
	if err != nil || read.JSON200 == nil || len(read.JSON200.Days) != 1 {
		return fmt.Errorf("read imported clicks: %v, %s", err, read.GetBody())
	}
	said["old_day"] = read.JSON200.Days[0].Date.String()
	forgotten, err := api.DeleteHistoryWithResponse(ctx, alias, "bitly", nil)
	if err != nil || forgotten.JSON200 == nil {
		return fmt.Errorf("take imported clicks away: %v, %s", err, forgotten.GetBody())
	}
	said["forgotten"] = forgotten.JSON200.Success
	return nil
}

func assist(ctx context.Context, api *client.ClientWithResponses, _ map[string]any) error {
	var id any = 1
	listed, err := api.CallToolWithResponse(ctx, client.ToolMessage{Jsonrpc: "2.0", Id: &id, Method: "tools/list"})
	if err != nil || listed.JSON200 == nil || listed.JSON200.Result == nil {
		return fmt.Errorf("tools: %v, %s", err, listed.GetBody())
	}
	return nil
}

func describe(ctx context.Context, api *client.ClientWithResponses, said map[string]any) error {
	account, err := api.GetAccountWithResponse(ctx)
	if err != nil || account.JSON200 == nil {
		return fmt.Errorf("account: %v, %s", err, account.GetBody())
	}
	said["scopes"] = len(account.JSON200.Token.Scopes)
	document, err := api.DescribeWithResponse(ctx)
	if err != nil || document.JSON200 == nil {
		return fmt.Errorf("describe: %v, %s", err, document.GetBody())
	}
	said["openapi"] = document.JSON200.Openapi
	if counts, err := api.AccountMetricsWithResponse(ctx); err != nil || counts.StatusCode() != http.StatusOK {
		return fmt.Errorf("metrics: %v, %s", err, counts.GetBody())
	}
	if page, err := api.ReadReferenceWithResponse(ctx); err != nil || page.StatusCode() != http.StatusOK {
		return fmt.Errorf("reference: %v, %s", err, page.GetBody())
	}
	return nil
}

func deny(ctx context.Context, _ *client.ClientWithResponses, said map[string]any) error {
	stranger, err := connect("wrong")
	if err != nil {
		return err
	}
	denied, err := stranger.ListLinksWithResponse(ctx, nil)
	if err != nil || denied.JSON401 == nil {
		return fmt.Errorf("list with a wrong token: %v, %s", err, denied.GetBody())
	}
	said["denied"] = denied.JSON401.Message
	return nil
}
