package dashboard

import (
	"html/template"
	"time"

	"linkstream/api/clickreport"
)

// zone returns the time zone of all days and times on the pages of the account: the one that the account names, else
// the browser's, which the script keeps in a cookie, else UTC.
func (c *call) zone() *time.Location {
	if c.location == nil {
		var found bool
		if c.location, found = clickreport.FindZone(c.account.TimeZone); !found {
			c.location = time.UTC
			if zone, ok := clickreport.FindZone(c.browserZone()); ok {
				c.location = zone
			}
		}
	}
	return c.location
}

// browserZone returns the name of the browser's time zone; "" if it is unknown.
func (c *call) browserZone() string { return clean(c.http.Request.Header.Cookie(zoneCookie)) }

// now returns the time in the account's zone.
func (c *call) now() time.Time { return c.dashboard.now().In(c.zone()) }

// timeElement returns a time for people, in its zone. The script shows it in the reader's words.
func timeElement(t time.Time) template.HTML {
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `">` + t.Format("2 Jan 2006, 15:04") +
		`</time>`)
}
