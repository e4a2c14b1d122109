package service

import (
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// SecurityPath is the path of a security.txt (RFC 9116), which says where vulnerabilities are reported.
const SecurityPath = "/.well-known/security.txt"

// securityAge is how long a security.txt is valid. RFC 9116 advises less than a year.
const securityAge = 90 * 24 * time.Hour

// Contacts are the contacts of a security.txt, in order of preference: URIs of mailto:, https: or tel:. The zero
// Contacts has no security.txt.
type Contacts []string

// Set implements flag.Value: it reads URIs and addresses of e-mail that are separated by commas.
func (c *Contacts) Set(list string) error {
	var all Contacts
	for s := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if address, err := mail.ParseAddress(s); err == nil && address.Address == s {
			s = "mailto:" + s
		}
		u, err := url.Parse(s)
		if err != nil || (u.Scheme != "https" || u.Host == "") &&
			(u.Scheme != "mailto" && u.Scheme != "tel" || u.Opaque == "") {
			return fmt.Errorf("%q is neither an address of e-mail nor a URI of https, mailto or tel", s)
		}
		all = append(all, u.String())
	}
	*c = all
	return nil
}

func (c *Contacts) String() string { return strings.Join(*c, ",") }

// Answer answers GET and HEAD of SecurityPath with the file. It reports whether the request was one, and there are
// contacts.
func (c Contacts) Answer(ctx *fasthttp.RequestCtx) bool {
	if len(c) == 0 || string(ctx.Path()) != SecurityPath || !ctx.IsGet() && !ctx.IsHead() {
		return false
	}
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	for _, contact := range c {
		fmt.Fprintf(ctx, "Contact: %s\n", contact)
	}
	expires := time.Now().UTC().Truncate(24 * time.Hour).Add(securityAge) // one text per day
	fmt.Fprintf(ctx, "Expires: %s\n", expires.Format(time.RFC3339))
	return true
}
