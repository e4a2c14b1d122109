package redirect

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

var (
	utmPrefix = []byte("utm_")
	// utmNames are the parameters that name a campaign, the widest first.
	utmNames = []string{"utm_source", "utm_medium", "utm_campaign"}
)

// appendCampaign appends schema.Click.Campaign of a visitor who is sent to location, with the visitor's query unless
// that is empty: a parameter of location takes precedence over the visitor's parameter of the same name. dst is empty
// and has room for schema.MaxCampaignLen bytes.
func appendCampaign(dst, location, query []byte) []byte {
	if !bytes.Contains(location, utmPrefix) && !bytes.Contains(query, utmPrefix) {
		return dst // as of most links
	}
	location, _, _ = bytes.Cut(location, []byte("#"))
	_, own, _ := bytes.Cut(location, []byte("?"))
	args, forwarded := fasthttp.AcquireArgs(), fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(args)
	defer fasthttp.ReleaseArgs(forwarded)
	args.ParseBytes(own)
	forwarded.ParseBytes(query)
	missing := 0
	for _, name := range utmNames {
		value := args.Peek(name)
		if len(value) == 0 {
			value = forwarded.Peek(name)
		}
		if len(value) == 0 {
			missing++
			continue
		}
		for ; missing > 0; missing-- {
			dst = appendPart(dst, []byte("-"))
		}
		dst = appendPart(dst, value)
	}
	return dst
}

// appendPart appends what there is room for.
func appendPart(dst, part []byte) []byte {
	if separator := []byte(" / "); len(dst) > 0 {
		dst = append(dst, separator[:min(len(separator), schema.MaxCampaignLen-len(dst))]...)
	}
	return append(dst, part[:min(len(part), schema.MaxCampaignLen-len(dst))]...)
}
