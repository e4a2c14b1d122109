package assistant

import "github.com/modelcontextprotocol/go-sdk/mcp"

// definition says what a tool adds to operations of the API.
type definition struct {
	name, title, about string
	calls              []endpoint
	without            []string // parameters that are no arguments
	with               map[string]any
	required           []string
	kind               mcp.ToolAnnotations
	run                func(*session) ([]mcp.Content, error)
}

// endpoint is a method and the pattern of a path.
type endpoint struct{ method, path string }

const (
	pathLink       = "/api/v1/links/{hash}"
	pathLinkReport = pathLink + "/report"

	argHash  = "hash"
	argLinks = "links"
	argList  = "list"
	argAfter = "after"
	argLimit = "limit"
	argPage  = "page"

	// rows bounds the rows of an answer.
	rows = 20
	// maxCompared bounds the links that are compared: each is a request.
	maxCompared = 10
)

var (
	reads   = mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
	creates = mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)}
	changes = mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)}
)

// after is the argument that continues an answer.
func after(of string) any {
	return map[string]any{"type": "string", "description": "The value of next in the answer before, to get the " + of +
		" that follow it; the other arguments stay the same."}
}

var definitions = []definition{
	{name: "shorten", title: "Create a short link", kind: creates, run: (*session).plain,
		about: "Creates a short link to long_url and answers its short_url.",
		calls: []endpoint{{"POST", "/api/v1/shorten"}}},
	{name: "find", title: "Find links", kind: reads, run: (*session).find,
		about: "Lists links of the account with their clicks, at most 20 at a time. If next is not null, there are more: " +
			"pass it as after.",
		calls:   []endpoint{{"GET", "/api/v1/links"}},
		without: []string{argPage, argLimit, argAfter, "updated_since"}, with: map[string]any{argAfter: after("links")}},
	{name: "show", title: "Show a link", kind: reads, run: (*session).plain,
		about: "Answers all fields of a link.", calls: []endpoint{{"GET", pathLink}}},
	{name: "edit", title: "Change a link", kind: changes, run: (*session).plain,
		about: "Changes the given fields of a link and leaves the others as they are.",
		calls: []endpoint{{"PATCH", pathLink}}},
	{name: "delete", title: "Delete a link", kind: changes, run: (*session).plain,
		about: "Moves a link to the trash: it stops redirecting at once. For 30 days the person can restore it in the " +
			"dashboard.",
		calls: []endpoint{{"DELETE", pathLink}}},
	{name: "report", title: "Report clicks", kind: reads, run: (*session).report,
		about: "Counts the clicks of a link, or without hash of all links of the account. Answers totals, the totals of " +
			"the days before (previous), and the most frequent name of each list (top). With list it answers that list, at " +
			"most 20 rows at a time: if next is not null, pass it as after.",
		calls:   []endpoint{{"GET", pathLinkReport}, {"GET", "/api/v1/report"}},
		without: []string{argLimit}, with: map[string]any{argAfter: after("rows")}},
	{name: "compare", title: "Compare links", kind: reads, run: (*session).compare,
		about:   "Counts the clicks of several links over the same days: totals, and the totals of the days before.",
		calls:   []endpoint{{"GET", pathLinkReport}},
		without: []string{argHash, "domain_id", "interval", argLimit},
		with: map[string]any{argLinks: map[string]any{
			"type": "array", "minItems": 2, "maxItems": maxCompared, "description": "The links, 2 to 10.",
			"items": map[string]any{"type": "object", "required": []string{argHash}, "additionalProperties": false,
				"properties": map[string]any{argHash: map[string]any{"type": "string"},
					"domain_id": map[string]any{"type": []string{"integer", "null"}}}}}},
		required: []string{argLinks}},
	{name: "qr", title: "Draw a QR code", kind: reads, run: (*session).image,
		about: "Draws the QR code of a link as an image: a PNG unless format says svg.",
		calls: []endpoint{{"GET", pathLink + "/qr"}}},
}
