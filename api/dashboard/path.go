package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"linkstream/api/sharing"
)

// Addresses that the frame or several nouns use. The others stand where they have a route.
const (
	pathStream = Root + "/live"

	pathSignIn = Root + "/sign-in"

	pathLinks = Root + "/links"
	// The path names a link by domain ID (0 for the default domain) and hash, because domains may share hashes.
	pathLink   = pathLinks + "/{domain}/{hash}"
	pathBulk   = Root + "/bulk"
	pathImport = Root + "/import"
	pathTags   = Root + "/tags"
	pathTrash  = Root + "/trash"

	pathReport = Root + "/report"
	pathShares = Root + "/shares"
	pathShared = sharing.Path + "{secret}"

	pathDomains  = Root + "/domains"
	pathSite     = pathDomains + "/{id}/site"
	pathTokens   = Root + "/tokens"
	pathWebhooks = Root + "/webhooks"
	pathAccount  = Root + "/account"
)

// signInFor returns the path of the sign-in page that leads to path afterwards.
func signInFor(path string) string {
	if path == Root || !localPath(path) {
		return pathSignIn
	}
	return pathSignIn + "?next=" + url.QueryEscape(path)
}

// localPath reports whether path is a page of the dashboard, so that a redirect to it stays here.
func localPath(path string) bool {
	if len(path) > maxNext || path != Root && !strings.HasPrefix(path, Root+"/") && !strings.HasPrefix(path, Root+"?") {
		return false
	}
	return !strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f })
}

// navItem is an entry of the navigation or of the account's menu.
type navItem struct {
	Path, Label, Icon string
	Current           string   // value of aria-current; "" if not current
	pages             []string // paths of the section that are not below Path
}

// The sections of the dashboard, in order.
var sections = []navItem{
	{Path: Root, Label: "Overview", Icon: "house"},
	{Path: pathLinks, Label: "Links", Icon: "link", pages: []string{pathTags, pathBulk, pathImport, pathTrash}},
	{Path: pathReport, Label: "Report", Icon: "chart-column", pages: []string{pathShares}},
	{Path: pathDomains, Label: "Domains", Icon: "globe"},
}

// accountPages are in the account's menu.
var accountPages = []navItem{
	{Path: pathAccount, Label: "Account", Icon: "user"},
	{Path: pathTokens, Label: "API tokens", Icon: "key-round"},
	{Path: pathWebhooks, Label: "Webhooks", Icon: "webhook"},
	{Path: PathReference, Label: "API reference", Icon: "book-open"},
}

// navigation returns the entries and marks the one that contains path.
func navigation(entries []navItem, path string) []navItem {
	items := slices.Clone(entries)
	for i, item := range items {
		switch {
		case path == item.Path:
			items[i].Current = "page"
		case item.Path != Root && below(path, item.Path) ||
			slices.ContainsFunc(item.pages, func(page string) bool { return below(path, page) }):
			items[i].Current = "true"
		}
	}
	return items
}

// below reports whether a path is a page's path or below it.
func below(path, page string) bool { return path == page || strings.HasPrefix(path, page+"/") }

// pagesOf returns the addresses of the pages of a list without other parameters.
func pagesOf(path string) func(page int64) string {
	return func(page int64) string { return path + "?page=" + strconv.FormatInt(page, 10) }
}

// back returns the page that a form's field "back" names, or another one.
func (c *call) back(other string) string {
	if back := c.form("back"); localPath(back) {
		return back
	}
	return other
}

// withParam returns the path with a parameter set.
func withParam(path, name, value string) string {
	to, err := url.Parse(path)
	if err != nil {
		return path
	}
	values := to.Query()
	values.Set(name, value)
	to.RawQuery = values.Encode()
	return to.String()
}
