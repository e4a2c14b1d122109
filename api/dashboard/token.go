package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"linkstream/api/auth"
	"linkstream/api/request"
	"linkstream/schema"
)

// Limits of tokens.
const (
	maxTokens       = 100 // valid tokens of an account
	maxTokenNameLen = 64  // characters
	maxTokenDays    = 3650
)

func (d *Dashboard) routeTokens() {
	d.get(pathTokens, request.Constant, d.listTokens)
	d.post(pathTokens, request.Constant, d.createToken)
	d.keep(pathTokens, "name")
	d.post(pathTokens+"/revoke", request.Constant, d.revokeToken)
}

// tokensPage is the data of the tokens page.
type tokensPage struct {
	Tokens []schema.Token
	Newest int64 // ID of the newest token; the form repeats it, which reveals a form that is sent twice
	Name   string
	URL    string // of the API
	New    string // secret of the new token; shown only once
	Scopes []option
	Ends   []option // days after which the token expires

	shares, webhooks map[int64]int64 // that end with a token, by its ID
}

// scopeNames says what tokens may do.
var scopeNames = map[string]string{schema.ScopeReadLinks: "Read links",
	schema.ScopeWriteLinks:  "Create and change links",
	schema.ScopeReadReports: "Read reports", schema.ScopeWebhooks: "Manage webhooks"}

// Fields of the form for a token besides its name.
const (
	fieldScopes = "scopes" // hidden: there are boxes of scopes, so that none checked is none
	fieldScope  = "scope"
	fieldDays   = "days"
	fieldKeep   = "keep" // of the form that revokes a token
)

// May says what a token may do.
func (p tokensPage) May(token schema.Token) string {
	if token.Scopes == "" {
		return "Everything"
	}
	var names []string
	for scope := range strings.FieldsSeq(token.Scopes) {
		names = append(names, scopeNames[scope])
	}
	return strings.Join(names, ", ")
}

// Made says what ends with a token; "": nothing.
func (p tokensPage) Made(token schema.Token) string {
	var made []string
	if n := p.shares[token.ID]; n > 0 {
		made = append(made, counted(n, "shared report", "shared reports"))
	}
	if n := p.webhooks[token.ID]; n > 0 {
		made = append(made, counted(n, "webhook", "webhooks"))
	}
	return strings.Join(made, " and ")
}

// Ended reports whether a token has expired.
func (p tokensPage) Ended(token schema.Token) bool { return token.ExpiredAt(time.Now()) }

// choices sets the choices of the form: the scopes that only read, unless the form was sent.
func (p *tokensPage) choices(c *call) {
	sent := c.http.IsPost()
	for _, scope := range schema.Scopes() {
		chosen := slices.Contains(c.values(fieldScope), scope) ||
			!sent && (scope == schema.ScopeReadLinks || scope == schema.ScopeReadReports)
		p.Scopes = append(p.Scopes, option{scope, scopeNames[scope], chosen})
	}
	p.Ends = options(c.form(fieldDays), option{Label: "Does not expire"}, option{Value: "30", Label: "In 30 days"},
		option{Value: "90", Label: "In 90 days"},
		option{Value: "365", Label: "In a year"})
}

func (d *Dashboard) tokensPage(c *call) (tokensPage, error) {
	tokens, err := d.DB.Tokens(c.ctx, c.account.ID)
	if err != nil {
		return tokensPage{}, err
	}
	shares, err := d.DB.Shares(c.ctx, c.account.ID)
	if err != nil {
		return tokensPage{}, err
	}
	hooks, err := d.DB.Webhooks(c.ctx, c.account.ID)
	page := tokensPage{Tokens: tokens, URL: d.url.String(), Name: c.typed("name"),
		shares: map[int64]int64{}, webhooks: map[int64]int64{}}
	for _, token := range tokens {
		page.Newest = max(page.Newest, token.ID)
	}
	for _, share := range shares {
		if !share.ExpiredAt(time.Now()) {
			page.shares[share.TokenID]++
		}
	}
	for _, hook := range hooks {
		if hook.Active {
			page.webhooks[hook.TokenID]++
		}
	}
	page.choices(c)
	return page, err
}

func (d *Dashboard) listTokens(c *call) error {
	page, err := d.tokensPage(c)
	if err != nil {
		return err
	}
	return d.render(c, "tokens", page)
}

// createToken answers with the secret, the only page that ever shows it. Reloading that page sends the form again; its
// field "newest" then names an older token, so no second one is created.
func (d *Dashboard) createToken(c *call) error {
	page, err := d.tokensPage(c)
	if err != nil {
		return err
	}
	page.Name = c.form("name")
	if p := tokenProblems(page, c.formID("newest")); p != nil {
		return d.invalid(c, "tokens", page, p)
	}
	secret, token := auth.NewToken(c.account.ID, page.Name)
	scopes, unknown := schema.JoinScopes(c.values(fieldScope))
	if scopes == "" && c.form(fieldScopes) != "" || unknown != "" {
		return d.invalid(c, "tokens", page, problems{fieldScope: "Choose at least one permission."})
	}
	if scopes != strings.Join(schema.Scopes(), " ") {
		token.Scopes = scopes
	}
	if days := c.formID(fieldDays); days > 0 {
		token.ExpiresAt = time.Now().UTC().AddDate(0, 0, int(min(days, maxTokenDays))).Truncate(time.Second)
	}
	if err := d.DB.CreateToken(c.ctx, &token); err != nil {
		return err
	}
	name := page.Name
	if page, err = d.tokensPage(c); err != nil {
		return err
	}
	if len(page.Tokens) > maxTokens { // others were created at the same time
		if err := d.DB.RevokeToken(c.ctx, token.ID, time.Now().UTC(), false); err != nil {
			return err
		}
		return c.seeOther(pathTokens, tooManyTokens)
	}
	page.Name, page.New = name, secret
	return d.render(c, "token", page)
}

var tooManyTokens = fmt.Sprintf("You have %d tokens, the most you can have. "+
	"Revoke one you no longer use.", maxTokens)

// tokenProblems returns why a token cannot be created. newest is the ID of the newest token when the form was rendered.
func tokenProblems(page tokensPage, newest int64) problems {
	n := utf8.RuneCountInString(page.Name)
	switch {
	case n == 0:
		return problems{"name": "Enter a name to recognize the token by."}
	case n > maxTokenNameLen:
		return problems{"name": fmt.Sprintf("A name may have at most %d characters.", maxTokenNameLen)}
	case !printable(page.Name):
		return problems{"name": "A name may contain visible characters only."}
	case len(page.Tokens) >= maxTokens:
		return problems{"": tooManyTokens}
	}
	for _, token := range page.Tokens {
		if token.ID > newest && token.Name == page.Name {
			return problems{"": "This token was already created, see below. It was shown once. If you did not save " +
				"it, revoke it and create another one."}
		}
	}
	return nil
}

// printable reports whether all characters of a text are visible. Format characters are not; they can make one name
// look like another.
func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsGraphic(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// revokeToken treats tokens of other accounts as unknown.
func (d *Dashboard) revokeToken(c *call) error {
	id := c.formID("token")
	tokens, err := d.DB.Tokens(c.ctx, c.account.ID)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		if token.ID != id {
			continue
		}
		if err := d.DB.RevokeToken(c.ctx, id, time.Now().UTC(), c.form(fieldKeep) != ""); err != nil {
			return err
		}
		return c.seeOther(pathTokens,
			fmt.Sprintf("The token “%s” was revoked. Programs that use it are refused from now on.", token.Name))
	}
	return c.seeOther(pathTokens, "That token is no longer valid.")
}
