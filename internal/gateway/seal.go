package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"maps"
	"time"

	"github.com/writ-project/writ/gate"
)

// A requestState is the server's own: it gives it to the client and gets it
// back. What comes back is forwarded unjudged, so it must be what the server
// gave, in this session, for this very call, not long ago, and not used before
// (attack S08). The client is given a sealed one; a seal that does not fit is
// refused. Seals are of this process: a restart ends the calls that wait.

const (
	sealLife = 10 * time.Minute
	maxUsed  = 10_000 // seals remembered as used; beyond, none is accepted
)

// seal wraps the state a server gave in answer to call, a JSON literal.
func (ss *sessions) seal(session string, call gate.Call, state []byte) string {
	until := binary.BigEndian.AppendUint64(nil, uint64(ss.clock().Add(sealLife).UnixNano()))
	mac := ss.sealMAC(session, call, until, state)
	return base64.RawURLEncoding.EncodeToString(append(append(mac, until...), state...))
}

// unseal returns the literal in a seal that fits, once.
func (ss *sessions) unseal(s *session, call gate.Call, sealed string) (state []byte, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || len(b) < sha256.Size+8 {
		return nil, errSeal
	}
	mac, until, rest := b[:sha256.Size], b[sha256.Size:sha256.Size+8], b[sha256.Size+8:]
	now, end := ss.clock(), time.Unix(0, int64(binary.BigEndian.Uint64(until)))
	if !hmac.Equal(mac, ss.sealMAC(s.id, call, until, rest)) || now.After(end) {
		return nil, errSeal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.used, func(_ [sha256.Size]byte, t time.Time) bool { return now.After(t) })
	key := [sha256.Size]byte(mac)
	if _, again := s.used[key]; again || len(s.used) >= maxUsed {
		return nil, errSeal
	}
	s.used[key] = end
	return rest, nil
}

var errSeal = errors.New("the seal does not fit")

func (ss *sessions) sealMAC(session string, call gate.Call, until, state []byte) []byte {
	h := hmac.New(sha256.New, ss.sealKey[:])
	for _, part := range []string{session, call.Server, call.Tool, string(call.Method), string(call.Arguments.Raw()), string(until), string(state)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}
