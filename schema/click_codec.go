package schema

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of click.proto.
const (
	fieldIncarnation protowire.Number = 1 + iota
	fieldLane
	fieldSeq
	fieldLinkID
	fieldClickedAt
	fieldUserAgent
	fieldReferrer
	fieldNetwork
	fieldAccountID
	fieldLanguage
	fieldRoute
	fieldLimited
	fieldVisitor
	fieldCampaign
	fieldPath
)

// MaxClickBodyLen is the maximum number of bytes that AppendClickBody appends: three varint fields, seven
// byte fields at their limits, a boolean, and a visitor.
const MaxClickBodyLen = 2 + 3*11 + (3 + MaxUserAgentLen) + (3 + MaxReferrerLen) + (2 + MaxNetworkLen) +
	(2 + MaxLanguageLen) + (2 + MaxRouteLen) +
	(2 + MaxCampaignLen) + (3 + MaxPathLen) + 9

// MaxClickLen is the maximum length of an encoded click in bytes.
const MaxClickLen = MaxClickBodyLen + (2 + len(Incarnation{})) + 6 + 11

// AppendClick appends the encoding of click.proto. It does not allocate if dst has MaxClickLen bytes of capacity left.
func AppendClick(dst []byte, c *Click) []byte {
	return AppendClickBody(AppendClickIdentity(dst, c.Lane, c.Seq), c)
}

// AppendClickIdentity appends the fields that identify a click. A protobuf message is the concatenation of its fields,
// so identity and body can be encoded separately and joined when they are sent.
func AppendClickIdentity(dst []byte, lane Lane, seq uint64) []byte {
	dst = appendBytes(dst, fieldIncarnation, lane.Incarnation[:], len(lane.Incarnation))
	dst = appendVarint(dst, fieldLane, uint64(lane.Number))
	return appendVarint(dst, fieldSeq, seq)
}

// AppendClickBody appends all other fields. It truncates byte fields to their limits.
func AppendClickBody(dst []byte, c *Click) []byte {
	dst = appendVarint(dst, fieldLinkID, uint64(c.LinkID))
	dst = appendVarint(dst, fieldClickedAt, uint64(c.ClickedAt.UnixMilli()))
	dst = appendBytes(dst, fieldUserAgent, c.UserAgent, MaxUserAgentLen)
	dst = appendBytes(dst, fieldReferrer, c.Referrer, MaxReferrerLen)
	dst = appendBytes(dst, fieldNetwork, c.Network, MaxNetworkLen)
	dst = appendVarint(dst, fieldAccountID, uint64(c.AccountID))
	dst = appendBytes(dst, fieldLanguage, c.Language, MaxLanguageLen)
	dst = appendBytes(dst, fieldRoute, c.Route, MaxRouteLen)
	if c.Limited {
		dst = appendVarint(dst, fieldLimited, 1)
	}
	if c.Visitor != 0 {
		dst = protowire.AppendFixed64(protowire.AppendTag(dst, fieldVisitor, protowire.Fixed64Type), c.Visitor)
	}
	dst = appendBytes(dst, fieldCampaign, c.Campaign, MaxCampaignLen)
	return appendBytes(dst, fieldPath, c.Path, MaxPathLen)
}

// proto3 omits fields that have their zero value.
func appendVarint(dst []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), v)
}

func appendBytes(dst []byte, field protowire.Number, v []byte, limit int) []byte {
	if len(v) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), v[:min(len(v), limit)])
}

// DecodeClick decodes data into c, whose byte fields then alias data. As in protobuf, it skips unknown fields and uses
// the last of a repeated field. It returns an error if data is not a Click, or if the click cannot be counted because
// its identity is incomplete: an incarnation of 16 bytes and a seq from 1.
func DecodeClick(data []byte, c *Click) error {
	*c = Click{ClickedAt: time.UnixMilli(0).UTC()}
	identified := false
	for len(data) > 0 {
		field, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("decode click: tag: %w", protowire.ParseError(n))
		}
		data = data[n:]
		field, v, b, n := consumeValue(field, typ, data)
		if n < 0 {
			return fmt.Errorf("decode click: field %d: %w", field, protowire.ParseError(n))
		}
		data = data[n:]
		switch field {
		case fieldIncarnation:
			if identified = len(b) == len(c.Lane.Incarnation); identified {
				c.Lane.Incarnation = Incarnation(b)
			}
		case fieldLane:
			c.Lane.Number = uint32(v)
		case fieldSeq:
			c.Seq = v
		case fieldLinkID:
			c.LinkID = int64(v)
		case fieldClickedAt:
			c.ClickedAt = time.UnixMilli(int64(v)).UTC()
		case fieldUserAgent:
			c.UserAgent = b
		case fieldReferrer:
			c.Referrer = b
		case fieldNetwork:
			c.Network = b
		case fieldAccountID:
			c.AccountID = int64(v)
		case fieldLanguage:
			c.Language = b
		case fieldRoute:
			c.Route = b
		case fieldLimited:
			c.Limited = v != 0
		case fieldCampaign:
			c.Campaign = b
		case fieldPath:
			c.Path = b
		case fieldVisitor:
			c.Visitor = v
		}
	}
	if !identified || c.Seq == 0 {
		return errNoIdentity
	}
	return nil
}

// consumeValue returns the value of a field and its length, and no field if it is unknown or has another type than
// ours: proto3 parsers skip both.
func consumeValue(field protowire.Number, typ protowire.Type, data []byte) (_ protowire.Number, v uint64,
	b []byte, n int) {
	switch {
	case typ == protowire.VarintType && isVarintField(field):
		v, n = protowire.ConsumeVarint(data)
	case typ == protowire.BytesType && isBytesField(field):
		b, n = protowire.ConsumeBytes(data)
	case typ == protowire.Fixed64Type && field == fieldVisitor:
		v, n = protowire.ConsumeFixed64(data)
	default:
		return 0, 0, nil, protowire.ConsumeFieldValue(field, typ, data)
	}
	return field, v, b, n
}

func isVarintField(field protowire.Number) bool {
	return field >= fieldLane && field <= fieldClickedAt || field == fieldAccountID || field == fieldLimited
}

func isBytesField(field protowire.Number) bool {
	return field == fieldIncarnation || field >= fieldUserAgent && field <= fieldNetwork ||
		field >= fieldLanguage && field <= fieldRoute || field >= fieldCampaign && field <= fieldPath
}

var errNoIdentity = errors.New("decode click: no incarnation of 16 bytes and seq from 1")
