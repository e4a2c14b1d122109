package dashboard

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"linkstream/api/auth"
	"linkstream/schema"
)

const (
	pathTokens      = Root + "/tokens"
	pathRevokeToken = pathTokens + "/revoke"
)

// Limits of tokens.
const (
	maxTokens       = 100 // valid ones of an account
	maxTokenNameLen = 64  // characters
)

func (d *Dashboard) routeTokens() {
	d.get(pathTokens, d.listTokens)
	d.post(pathTokens, d.createToken)
	d.post(pathRevokeToken, d.revokeToken)
}

// tokensPage is the data of the page of tokens.
type tokensPage struct {
	Tokens []schema.Token
	Newest int64 // ID of the newest token, by which the form tells that it was sent before
	Name   string
	URL    string // of the API
	New    string // secret of the token that was just made; shown this once
}

func (d *Dashboard) tokensPage(c *call) (tokensPage, error) {
	tokens, err := d.DB.Tokens(c.ctx, c.account.ID)
	page := tokensPage{Tokens: tokens, URL: d.url}
	for _, token := range tokens {
		page.Newest = max(page.Newest, token.ID)
	}
	return page, err
}

func (d *Dashboard) listTokens(c *call) error {
	page, err := d.tokensPage(c)
	if err != nil {
		return err
	}
	return d.render(c, "tokens", page)
}

// createToken answers with the secret, in the only page that ever holds it. A browser that reloads this page sends the
// form again: it still says which token was the newest when it was made, and so no second token comes of it.
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
	if err := d.DB.CreateToken(c.ctx, &token); err != nil {
		return err
	}
	name := page.Name
	if page, err = d.tokensPage(c); err != nil {
		return err
	}
	if len(page.Tokens) > maxTokens { // others were made at the same time
		if err := d.DB.RevokeToken(c.ctx, token.ID, time.Now().UTC()); err != nil {
			return err
		}
		return c.seeOther(pathTokens, tooManyTokens)
	}
	page.Name, page.New = name, secret
	return d.render(c, "token", page)
}

var tooManyTokens = fmt.Sprintf("You have %d tokens, which is as many as there can be. "+
	"Revoke one that is not used any more.", maxTokens)

// tokenProblems says why a token is not made; newest is the token that was the newest when the form was made.
func tokenProblems(page tokensPage, newest int64) problems {
	n := utf8.RuneCountInString(page.Name)
	switch {
	case n == 0:
		return problems{"name": "A token needs a name, so that you know later which it is."}
	case n > maxTokenNameLen:
		return problems{"name": fmt.Sprintf("A name has at most %d characters.", maxTokenNameLen)}
	case !printable(page.Name):
		return problems{"name": "A name has only characters that can be seen."}
	case len(page.Tokens) >= maxTokens:
		return problems{"": tooManyTokens}
	}
	for _, token := range page.Tokens {
		if token.ID > newest && token.Name == page.Name {
			return problems{"": "This form was sent before, and the token was made then: see below. It was shown that " +
				"once and cannot be shown again. If you have not kept it, revoke it and make another one."}
		}
	}
	return nil
}

// printable reports whether a text can be shown as it is. Format characters are not: they can make one name look like
// another.
func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsGraphic(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// revokeToken says nothing of tokens that are not the account's own: to it, there are none.
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
		if err := d.DB.RevokeToken(c.ctx, id, time.Now().UTC()); err != nil {
			return err
		}
		return c.seeOther(pathTokens,
			fmt.Sprintf("The token “%s” is revoked. Programs that use it are refused from now on.", token.Name))
	}
	return c.seeOther(pathTokens, "That token is not valid any more.")
}
