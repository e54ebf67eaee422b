package sqlite

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-project/writ/audit"
	"golang.org/x/mod/sumdb/note"
)

// JournalName is the journal's name in the state directory.
const JournalName = "audit.journal"

// # Journal
//
// Every append goes to the journal first, one frame for each commit; what it
// holds is folded into the database later, and then the journal begins anew.
// Numbers are big-endian.
//
//	header:  "WRITjnl1" · register (8) · generation (8) · checksum of magic and
//	         generation (4) · zeros (4) · synced (8) · checksum of generation and synced (4)
//	frame:   "WRIT" (4) · length of the payload (4) · checksum before (4) · checksum (4) · payload
//	payload: index of the first record · how many · the records · root (32) · code · head
//	record:  leaf · how many values · for each: name · salt (16) · bytes
//
// Counts and lengths in a payload are uvarints, and what has a length stands
// behind it. The head is the signed checkpoint of the log as the frame leaves it. A
// signature takes ten times as long as all else, so what nobody syncs is written with
// none, and a frame of no records that has one follows within signWithin. Until
// then the code vouches for it: HMAC-SHA-256 over the generation, the checksum before
// and the payload up to the code, by a key that only the log's signer can make. Without a
// signer both are empty. A checksum is CRC-32C over the generation, the frame's
// header up to it, and the payload. The generation is drawn anew with each
// beginning, so a frame of an earlier one is none. The register is drawn anew
// whenever a session was added, closed or touched.
//
// Behind the last frame the file is longer than it has to be, by zeros: a sync of what is
// written over them takes half as long as one of a file that grew.
//
// Only who holds the lock on the file writes frames. Synced is how many records of the
// log are known to be on disk, in the journal or the database; where its checksum is not
// right nothing is known. The header stands in one sector, so it is written whole or
// not. What is no whole frame is of a process that was killed while it wrote, or of a
// power cut, nobody waits for it, and the next writer cuts it off. But where records that
// were synced are missing, nothing is cut, and the log is refused: the journal was damaged,
// or an older database put beside it.
const (
	journalMagic  = "WRITjnl1"
	frameMagic    = "WRIT"
	frameHeader   = 16
	registerPlace = len(journalMagic)
	beginning     = registerPlace + 8 // of what is drawn anew with each
	syncedPlace   = beginning + 16
	headerSize    = syncedPlace + 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// medium is what a journal is kept on: a file.
type medium interface {
	io.ReaderAt
	io.WriterAt
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// osFile is a file whose Sync need not make its times durable.
type osFile struct{ *os.File }

func (f osFile) Sync() error { return datasync(f.File) }

// journal is an open journal, and how far it was read.
type journal struct {
	medium
	file *os.File
	own  fs.FileInfo // of the file

	position
	synced int64 // records on disk, as the header said last
	ahead  bool  // zeros were seen behind the last frame

	// How long the file was when it was last written, of the writer alone: it only grows
	// until it begins anew.
	room struct {
		generation [8]byte
		end        int64
	}
}

// position is how far a journal was read.
type position struct {
	generation [8]byte
	end        int64  // of the last frame
	sum        uint32 // its checksum
}

// frame is one commit, or the head of those before.
type frame struct {
	items []audit.Item // with their hashes, once it was followed
	mark
	at     position // where it stands
	coded  []byte   // what of the payload the code is of
	code   []byte
	behind position // where the next one stands
}

// mark is the log as a frame leaves it.
type mark struct {
	size int64
	root audit.Hash
	note []byte
}

// openJournal opens the journal beside a database; readOnly, one that is not
// there is nil.
func openJournal(database string, readOnly bool) (*journal, error) {
	path := filepath.Join(filepath.Dir(database), JournalName)
	flags := os.O_RDWR | os.O_CREATE
	if readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if readOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, openError(path, Unwritable, bare(err))
	}
	own, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, openError(path, Unwritable, bare(err))
	}
	return &journal{medium: osFile{f}, file: f, own: own}, nil
}

// lock waits until no other process writes.
func (j *journal) lock(patience time.Duration) error { return lockFile(j.file, patience) }

// lockFile waits until no other process has the file locked.
func lockFile(f *os.File, patience time.Duration) error {
	until := time.Now().Add(patience)
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		ok, err := tryLock(f)
		if ok || err != nil {
			return err
		}
		if time.Now().After(until) {
			return &OpenError{Path: f.Name(), Reason: Locked, Hint: hints[Locked]}
		}
		time.Sleep(wait)
	}
}

func (j *journal) unlock() { unlockFile(j.file) }

// begin makes the journal empty: what it holds is in the database, with so many records
// of the log. With wipe nothing of it is left on the disk. Whoever calls it holds the lock,
// and wherever he is stopped, others find the generation that they know, with all frames, or
// another.
func (j *journal) begin(records int64, wipe bool) error {
	fi, err := j.Stat()
	if err != nil {
		return err
	}
	var g [8]byte
	rand.Read(g[:])
	at := position{generation: g, end: int64(headerSize)}
	var head [headerSize]byte
	copy(head[:], journalMagic)
	copy(head[beginning:], g[:])
	binary.BigEndian.PutUint32(head[beginning+8:], at.beginning())
	copy(head[syncedPlace:], at.upTo(records))
	if fi.Size() < int64(headerSize) {
		_, err = j.WriteAt(head[:], 0)
	} else {
		_, err = j.WriteAt(head[beginning:], int64(beginning)) // another may draw the register now
	}
	if err == nil && wipe {
		err = j.wipe(fi.Size())
	}
	if err == nil && fi.Size() > int64(headerSize) { // of a new file a power cut could leave its size alone
		err = j.Truncate(int64(headerSize))
	}
	if err == nil {
		j.position = at
	}
	return err
}

// again writes what a header says of its beginning once more. Whoever calls it holds the lock.
func (j *journal) again() error {
	var head [syncedPlace]byte
	_, err := j.ReadAt(head[:], 0)
	if err == nil {
		_, err = j.WriteAt(head[:registerPlace], 0)
	}
	if err == nil {
		_, err = j.WriteAt(head[beginning:], int64(beginning))
	}
	if err == nil {
		err = j.Sync()
	}
	return err
}

// wipe overwrites all frames, on the disk. Zeros say that nothing came since, so
// the header has to be there first.
func (j *journal) wipe(size int64) error {
	if err := j.Sync(); err != nil {
		return err
	}
	for at := int64(headerSize); at < size; at += mostZeros {
		if _, err := j.WriteAt(zeros[:min(mostZeros, size-at)], at); err != nil {
			return err
		}
	}
	return j.Sync()
}

// beginning is the checksum of a header.
func (at *position) beginning() uint32 {
	return crc32.Update(crc32.Checksum([]byte(journalMagic), castagnoli), castagnoli, at.generation[:])
}

// upTo is what a header says of how many records are on disk.
func (at *position) upTo(records int64) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(records))
	return binary.BigEndian.AppendUint32(b, crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, at.generation[:]))
}

// isSynced notes that so many records are on disk. Where the journal began anew
// meanwhile it says nothing.
func (j *journal) isSynced(at position, records int64) error {
	_, err := j.WriteAt(at.upTo(records), int64(syncedPlace))
	return err
}

// changed tells all processes that the register of sessions changed.
func (j *journal) changed() error {
	var r [8]byte
	rand.Read(r[:])
	_, err := j.WriteAt(r[:], int64(registerPlace))
	return err
}

// register is drawn anew whenever the register of sessions changed.
func (j *journal) register() (r [8]byte, err error) {
	_, err = j.ReadAt(r[:], int64(registerPlace))
	return r, err
}

// look reads the header. renewed says that the journal began anew since it was
// read.
func (j *journal) look() (renewed bool, err error) {
	var h [headerSize]byte
	for try := range 3 { // who reads while it is written may find half of it
		time.Sleep(time.Duration(try) * time.Millisecond)
		n, err := j.ReadAt(h[:], 0)
		if n < len(h) {
			if errors.Is(err, io.EOF) && j.end == 0 {
				return false, nil // it is being made
			} else if errors.Is(err, io.EOF) {
				err = errJournal
			}
			return false, err
		}
		at := position{generation: [8]byte(h[beginning:]), end: int64(headerSize)}
		if string(h[:len(journalMagic)]) != journalMagic || at.beginning() != binary.BigEndian.Uint32(h[beginning+8:]) {
			continue
		}
		if renewed = at.generation != j.generation; renewed {
			j.position = at
		}
		j.synced = int64(binary.BigEndian.Uint64(h[syncedPlace:]))
		if !bytes.Equal(at.upTo(j.synced), h[syncedPlace:]) {
			j.synced = 0
		}
		return renewed, nil
	}
	return false, errJournal
}

// news is what a journal holds that was not read before.
type news struct {
	frames  []frame
	from    position // of the first of them
	renewed bool     // it began anew: what it held before is in the database
	torn    bool     // behind the frames is what is none
	synced  int64    // so many records there are, here or in the database
}

// missing is what it means that records are not there which were synced.
func (n *news) missing() error {
	if n.torn {
		return errJournal
	}
	return errRolledBack
}

// catchUp reads what came since it was read. With an error come the frames before
// what is damaged.
func (j *journal) catchUp() (n news, err error) {
	for {
		var next [1]byte // before the header: who made it anew was done with what was there
		got, err := j.ReadAt(next[:], j.end)
		if err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		j.ahead = got > 0 && next[0] == 0
		renewed, err := j.look()
		if err != nil {
			return n, err
		}
		if renewed {
			n.renewed, n.frames = true, nil
		} else if next[0] == 0 {
			return n, nil
		}
		if n.synced = j.synced; len(n.frames) == 0 {
			n.from = j.position
		}
		damage := j.read(&n)
		if renewed, err = j.look(); err != nil || !renewed {
			return n, errors.Join(err, damage)
		}
		j.generation = [8]byte{} // the next look finds it renewed
	}
}

var (
	errJournal = fmt.Errorf("%w: the journal is damaged", audit.ErrAltered)
	errGone    = fmt.Errorf("%w: the journal was removed or replaced", audit.ErrAltered)
)

// read adds the frames behind those that were read, and goes behind them.
func (j *journal) read(n *news) error {
	if n.torn = false; j.end == 0 { // it is being made
		return nil
	}
	for size := 64 << 10; ; {
		b := make([]byte, size)
		got, err := j.ReadAt(b, j.end)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		b = b[:got]
		read := 0
		for len(b) > 0 && b[0] != 0 {
			payload, sum, ok := j.frameAt(b, j.sum)
			if !ok {
				break
			}
			if read = frameHeader + len(payload); j.end+int64(read) > mostJournal {
				return errJournal
			}
			f, err := readPayload(payload)
			if err != nil {
				return err
			}
			f.at = j.position
			j.end, j.sum = j.end+int64(read), sum
			f.behind = j.position
			n.frames = append(n.frames, f)
			b = b[read:]
		}
		whole := len(b) < frameHeader || frameHeader+int64(binary.BigEndian.Uint32(b[4:])) <= int64(len(b))
		switch {
		case len(b) > 0 && b[0] == 0:
			return nil
		case got < size: // the end of the file
			n.torn = len(b) > 0
			return nil
		case read == 0 && whole:
			n.torn = true
			return nil
		case read == 0: // it is longer than what was read, or it is none and says so
			if fi, err := j.Stat(); err != nil {
				return err
			} else if size = int(min(frameHeader+int64(binary.BigEndian.Uint32(b[4:])), fi.Size()-j.end)); size <= len(b) || size > mostFrame {
				n.torn = true
				return nil
			}
		}
	}
}

// frameAt is the payload of the frame that b begins with.
func (at *position) frameAt(b []byte, before uint32) (payload []byte, sum uint32, ok bool) {
	if len(b) < frameHeader || string(b[:4]) != frameMagic {
		return nil, 0, false
	}
	n := binary.BigEndian.Uint32(b[4:])
	if int64(n) > min(int64(len(b)), mostFrame)-frameHeader || binary.BigEndian.Uint32(b[8:]) != before {
		return nil, 0, false
	}
	payload = b[frameHeader : frameHeader+int(n)]
	sum = at.checksum(b[:12], payload)
	return payload, sum, sum == binary.BigEndian.Uint32(b[12:])
}

func (at *position) checksum(header, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, at.generation[:])
	sum = crc32.Update(sum, castagnoli, header)
	return crc32.Update(sum, castagnoli, payload)
}

func appendBytes(b, x []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(x))), x...)
}

// coder makes the codes of frames.
type coder []byte

// newCoder makes the key of what a signer signs of a text that is no note.
func newCoder(s note.Signer) (coder, error) {
	if s == nil {
		return nil, nil
	}
	sig, err := s.Sign([]byte("writ journal"))
	key := sha256.Sum256(sig)
	return key[:], err
}

// code is that of a frame at a position.
func (c coder) code(at position, coded []byte) []byte {
	if c == nil {
		return nil
	}
	h := hmac.New(sha256.New, c)
	h.Write(binary.BigEndian.AppendUint32(at.generation[:], at.sum))
	h.Write(coded)
	return h.Sum(nil)
}

// vouches reports whether a frame was written by who has the key.
func (c coder) vouches(f *frame) bool {
	return c != nil && hmac.Equal(c.code(f.at, f.coded), f.code)
}

// frameOf is the frame that is to stand at a position. The items of f become those of
// the frame: they share no byte with what they were.
func (at position) frameOf(f *frame, c coder) ([]byte, error) {
	size := frameHeader + 96 + len(f.note)
	for i := range f.items {
		size += len(f.items[i].Leaf) + 8
		for j := range f.items[i].Values {
			size += len(f.items[i].Values[j].Bytes) + 64
		}
	}
	b := make([]byte, frameHeader, size)
	b = binary.AppendUvarint(b, uint64(f.size-int64(len(f.items))))
	b = binary.AppendUvarint(b, uint64(len(f.items)))
	for i := range f.items {
		it := &f.items[i]
		b = appendBytes(b, it.Leaf)
		b = binary.AppendUvarint(b, uint64(len(it.Values)))
		for j := range it.Values {
			v := &it.Values[j]
			b = appendBytes(b, []byte(v.Name))
			b = append(b, v.Salt[:]...)
			b = appendBytes(b, v.Bytes)
		}
	}
	b = append(b, f.root[:]...)
	b = appendBytes(b, c.code(at, b[frameHeader:]))
	b = appendBytes(b, f.note)
	if len(b) > mostFrame {
		return nil, unfit{errors.New("sqlite: too much for one append")}
	}
	copy(b, frameMagic)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-frameHeader))
	binary.BigEndian.PutUint32(b[8:], at.sum)
	at.sum = at.checksum(b[:12], b[frameHeader:])
	binary.BigEndian.PutUint32(b[12:], at.sum)
	at.end += int64(len(b))
	own, err := readPayload(b[frameHeader:])
	for i := range own.items {
		was := &f.items[i]
		own.items[i].Session, own.items[i].N, own.items[i].Hashes = was.Session, was.N, was.Hashes
	}
	own.behind = at
	*f = own
	return b, err
}

// put writes a frame that stands at a position. ahead says that zeros are behind it. What of the frame
// was written before an error is cut off; where that fails too, hard is true.
func (j *journal) put(b []byte, from position, ahead bool) (hard bool, err error) {
	at, end := from.end, from.end+int64(len(b))
	if end > mostJournal {
		return false, errFull
	}
	if !ahead || j.room.generation != from.generation || j.room.end < end {
		fi, err := j.Stat()
		if err != nil {
			return false, err
		}
		if fi.Size() < at {
			return false, errJournal
		}
		j.room.generation, j.room.end = from.generation, fi.Size()
		if fi.Size() < end {
			// Where there is no room for zeros there may be room for the frame.
			more := min(max(end, leastZeros), mostZeros)
			if _, err := j.WriteAt(zeros[:more], end); err != nil {
				j.Truncate(fi.Size())
			} else {
				j.room.end = end + more
			}
		}
	}
	if _, err := j.WriteAt(b, at); err != nil {
		return j.Truncate(at) != nil, unfit{err}
	}
	return false, nil
}

// How long a frame and the journal may be, and how short a record and its word on a value are:
// who writes to the file cannot make a reader take more into memory (L09). And how many
// zeros are written ahead.
const (
	mostFrame   = 256 << 20
	mostJournal = 2 * mostFrame
	leastLeaf   = len(`{"commit":{},"data":{},"kind":"k","n":1,"session":"s_x","time":"1970-01-01T00:00:00Z","v":1}`)
	leastCommit = len(`"v":""`) + 2*len(audit.Digest{})
	leastZeros  = 16 << 10
	mostZeros   = 256 << 10
)

// zeros are written, and nothing else is done with them.
var zeros [mostZeros]byte

// MaxJournal is how long the file JournalName may be: beyond it appends fail.
const MaxJournal = mostJournal

// unfit is why a frame was not written where a shorter one might be.
type unfit struct{ error }

func (u unfit) Unwrap() error { return u.error }

var errFull = unfit{errors.New("sqlite: the journal is full, and cannot be moved into the database")}

// payload reads what writing wrote; after the first fault everything is empty.
type payload struct {
	b   []byte
	bad bool
}

func (p *payload) number() uint64 {
	n, used := binary.Uvarint(p.b)
	if p.bad = p.bad || used <= 0; p.bad {
		return 0
	}
	p.b = p.b[used:]
	return n
}

// count is a number that is not more than most.
func (p *payload) count(most int) int {
	n := p.number()
	if p.bad = p.bad || n > uint64(most); p.bad {
		return 0
	}
	return int(n)
}

func (p *payload) take(n int) []byte {
	if p.bad = p.bad || n > len(p.b); p.bad {
		return nil
	}
	b := p.b[:n:n]
	p.b = p.b[n:]
	return b
}

func (p *payload) bytes(least, most int) []byte {
	b := p.take(p.count(most))
	p.bad = p.bad || len(b) < least
	return b
}

// readPayload reads the payload of a frame, whose bytes it keeps.
func readPayload(b []byte) (f frame, err error) {
	p := &payload{b: b}
	first := int64(p.number())
	f.items = make([]audit.Item, p.count(len(b)/leastLeaf))
	for i := range f.items {
		it := &f.items[i]
		it.Index, it.Leaf = first+int64(i), p.bytes(leastLeaf, audit.MaxLeaf)
		it.Values = make([]audit.Value, p.count(len(it.Leaf)/leastCommit))
		for k := range it.Values {
			v := &it.Values[k]
			v.Name = string(p.bytes(1, len(it.Leaf)))
			copy(v.Salt[:], p.take(audit.SaltSize))
			v.Bytes = p.bytes(0, audit.MaxValue)
		}
	}
	copy(f.root[:], p.take(len(f.root)))
	f.coded = b[:len(b)-len(p.b)]
	f.code = p.bytes(0, sha256.Size)
	f.note = p.bytes(0, audit.MaxCheckpoint)
	f.size = first + int64(len(f.items))
	if p.bad || len(p.b) > 0 || first < 0 || f.size < first || len(f.items) == 0 && len(f.note) == 0 {
		return frame{}, errJournal
	}
	return f, nil
}
