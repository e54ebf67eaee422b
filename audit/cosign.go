package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// cosigns verifies the cosignatures of one witness (C2SP tlog-cosignature, Ed25519).
type cosigns struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

// The bytes that stand before the key in a witness's verifier key, and before the text
// of what it signed.
const (
	cosignatureKey    = 4
	cosignatureHeader = "cosignature/v1\ntime %d\n"
	stampSize         = 8
)

// NewCosignatures returns the verifier of a witness's cosignatures, of its key in the
// encoding of package note: NAME+HASH+BASE64. A log's key is none.
func NewCosignatures(vkey string) (note.Verifier, error) {
	bad := errors.New("audit: not the Ed25519 key of a witness")
	parts := strings.SplitN(vkey, "+", 3)
	if len(parts) != 3 {
		return nil, bad
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != cosignatureKey || parts[0] == "" || strings.ContainsAny(parts[0], " \t\r\n+") {
		return nil, bad
	}
	sum := Sum([]byte(parts[0] + "\n" + string(raw)))
	c := &cosigns{parts[0], binary.BigEndian.Uint32(sum[:]), raw[1:]}
	if parts[1] != fmt.Sprintf("%08x", c.hash) {
		return nil, bad
	}
	return c, nil
}

func (c *cosigns) Name() string    { return c.name }
func (c *cosigns) KeyHash() uint32 { return c.hash }

func (c *cosigns) Verify(text, sig []byte) bool {
	if len(sig) != stampSize+ed25519.SignatureSize {
		return false
	}
	at := binary.BigEndian.Uint64(sig)
	return at < 1<<63 && ed25519.Verify(c.key, append(fmt.Appendf(nil, cosignatureHeader, at), text...), sig[stampSize:])
}

// Cosigned returns a signed checkpoint with the signature lines of others behind it that
// witness verifies; what else they sent is left out. It is an error if that is none.
func Cosigned(checkpoint, lines []byte, witness note.Verifier) ([]byte, error) {
	n, err := note.Open(append(append([]byte{}, checkpoint...), lines...), note.VerifierList(witness))
	if err != nil {
		return nil, errors.New("audit: the witness did not sign this checkpoint")
	}
	out := append([]byte{}, checkpoint...)
	for _, s := range n.Sigs {
		out = fmt.Appendf(out, "— %s %s\n", s.Name, s.Base64)
	}
	return out, nil
}
