package rest

import (
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/schema"
)

type accountAnswer struct {
	Success bool          `json:"success"`
	Account accountFields `json:"account"`
	Token   tokenFields   `json:"token"`
	Rate    rateFields    `json:"rate"`
}

type accountFields struct {
	Email    string  `json:"email"`
	TimeZone *string `json:"time_zone"`
}

type tokenFields struct {
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	ExpiresAt *string  `json:"expires_at"`
}

type rateFields struct {
	Limit     int    `json:"limit"`
	Remaining int    `json:"remaining"`
	Reset     string `json:"reset"`
}

// getAccount answers GET /api/v1/account.
func (a *API) getAccount(c *call) error {
	token, account, err := a.links.TokenByDigest(c.ctx, auth.Credential(c.http.Request.Header.Peek("Authorization")))
	if schema.ErrorCode(err) == schema.CodeNotFound { // revoked meanwhile
		return schema.ClientErrorf(schema.CodeUnauthorized, "The API token is missing or invalid.")
	}
	if err != nil {
		return withOutage("The account cannot be read", err)
	}
	reset := c.arrived.Truncate(ratelimit.Window).Add(ratelimit.Window)
	body := accountAnswer{Success: true, Account: accountFields{Email: account.Email},
		Token: tokenFields{Name: token.Name, Scopes: strings.Fields(token.Scopes)},
		Rate:  rateFields{c.quota.Limit, c.quota.Remaining, formatTime(reset)}}
	if account.TimeZone != "" {
		body.Account.TimeZone = &account.TimeZone
	}
	if token.Scopes == "" {
		body.Token.Scopes = schema.Scopes()
	}
	if !token.ExpiresAt.IsZero() {
		body.Token.ExpiresAt = new(formatTime(token.ExpiresAt.Truncate(time.Second)))
	}
	return answer(c.http, fasthttp.StatusOK, body)
}
