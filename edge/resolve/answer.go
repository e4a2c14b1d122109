package resolve

import (
	"encoding/binary"
	"math"
	"time"

	"linkstream/schema"
)

// The answer of a link's entry has all that a request needs:
//
//	nothing                       the link is inactive
//	isTakenDown, isDeleted        a byte
//	a location                    which begins with a visible character
//	forwards, location            a byte before the location: the visitor's query string is appended to it
//	long [| forwards], time of expiry in Unix seconds (8 bytes), length of the location (4 bytes), length of the location
//	    after that time (4 bytes), location, location after that time, behaviour
//
// So a link without expiry, forwarding and behaviour takes no more memory than its location.
const (
	isTakenDown = 0
	isDeleted   = 1
	forwards    = 4 // flags
	long        = 8
)

const longLen = 1 + 8 + 4 + 4

// never is the expiry of links that do not expire.
const never = math.MaxInt64

// appendAnswer appends the bytes of a link's entry.
func appendAnswer(dst []byte, d *schema.EdgeLink) []byte {
	switch {
	case d.Stopped == schema.Deleted:
		return append(dst, isDeleted)
	case d.Stopped != schema.NotStopped:
		return append(dst, isTakenDown)
	case !d.Active:
		return dst
	}
	flags := byte(0)
	if d.ForwardQuery {
		flags |= forwards
	}
	if d.ExpiresAt.IsZero() && d.Behaviour == nil {
		if flags != 0 {
			dst = append(dst, flags)
		}
		return appendLocation(dst, d.URL)
	}
	expiry := int64(never)
	if !d.ExpiresAt.IsZero() {
		expiry = d.ExpiresAt.Unix()
	}
	dst = append(dst, flags|long)
	dst = binary.BigEndian.AppendUint64(dst, uint64(expiry))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	begin := len(dst)
	dst = appendLocation(dst, d.URL)
	binary.BigEndian.PutUint32(dst[begin-8:], uint32(len(dst)-begin))
	after := len(dst)
	dst = appendLocation(dst, d.ExpiredURL)
	binary.BigEndian.PutUint32(dst[begin-4:], uint32(len(dst)-after))
	return appendBehaviour(dst, d.Behaviour, dst[begin:after])
}

// decodeAnswer returns where a link leads at the time now, or why it leads nowhere. It does not allocate.
func decodeAnswer(answer []byte, now time.Time) (location []byte, forward bool, stop Stop) {
	switch {
	case len(answer) == 0:
		return nil, false, Inactive
	case answer[0] > ' ':
		return answer, false, NotStopped
	case answer[0] == isTakenDown:
		return nil, false, TakenDown
	case answer[0] == isDeleted:
		return nil, false, Deleted
	}
	a := cutAnswer(answer)
	switch {
	case now.Unix() >= a.expiry && len(a.after) > 0:
		return a.after, a.forward, NotStopped
	case now.Unix() >= a.expiry:
		return nil, a.forward, Expired
	case len(a.extension) > 0:
		return nil, a.forward, Extended
	}
	return a.before, a.forward, NotStopped
}

// answerParts are the parts of a link's entry. They belong to the entry.
type answerParts struct {
	before, after []byte // locations, empty if there are none
	expiry        int64  // when before stops being the answer, in Unix seconds
	forward       bool
	extension     Behaviour
}

// cutAnswer returns the parts of the answer of a link that is not stopped. They are zero for others.
func cutAnswer(answer []byte) answerParts {
	switch {
	case len(answer) == 0 || answer[0] == isTakenDown || answer[0] == isDeleted:
		return answerParts{}
	case answer[0] > ' ':
		return answerParts{before: answer, expiry: never}
	}
	forward := answer[0]&forwards != 0
	if answer[0]&long == 0 {
		return answerParts{before: answer[1:], expiry: never, forward: forward}
	}
	before, after := binary.BigEndian.Uint32(answer[9:]), binary.BigEndian.Uint32(answer[13:])
	rest := answer[longLen:]
	end := before + after
	expiry := int64(binary.BigEndian.Uint64(answer[1:]))
	return answerParts{before: rest[:before:before], after: rest[before:end:end], expiry: expiry, forward: forward,
		extension: Behaviour(rest[end:])}
}

// validAnswer reports whether appendAnswer can have returned bytes that come from outside of the process.
func validAnswer(answer []byte) bool {
	switch {
	case len(answer) == 0 || answer[0] > ' ':
		return true
	case answer[0] == isTakenDown || answer[0] == isDeleted:
		return len(answer) == 1
	case answer[0]&^(forwards|long) != 0:
		return false
	case answer[0]&long == 0:
		return len(answer) > 1
	case len(answer) <= longLen:
		return false
	}
	before, after := uint64(binary.BigEndian.Uint32(answer[9:])), uint64(binary.BigEndian.Uint32(answer[13:]))
	locations := answer[longLen:]
	return before+after <= uint64(len(locations)) && Behaviour(locations[before+after:]).valid(locations[:before])
}
