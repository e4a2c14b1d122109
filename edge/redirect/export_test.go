package redirect

import "linkstream/schema"

// MaxForwarded is maxForwarded.
const MaxForwarded = maxForwarded

// Forward returns location with the visitor's query string.
func Forward(location, query string) string {
	return string(new(forwardBuffer).forward([]byte(location), []byte(query)))
}

// Campaign returns the campaign of a visitor who is sent to location.
func Campaign(location, query string) string {
	return string(appendCampaign(make([]byte, 0, schema.MaxCampaignLen), []byte(location), []byte(query)))
}
