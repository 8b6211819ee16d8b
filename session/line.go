package session

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// A line is a JSON object whose last member is "sum": the CRC-32C, in eight
// hexadecimal digits, of the same object without that member.
const (
	sumPrefix = `,"sum":"`
	sumLen    = len(sumPrefix) + 8 + len(`"}`)

	// maxLine bounds what one record may take, and so what a reader has to hold.
	maxLine = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func lineSum(body []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, body), castagnoli, []byte{'}'})
}

// encode returns the line for rec with its newline.
func encode(rec *Record) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rec); err != nil {
		return nil, fmt.Errorf("cannot encode a %s record: %w", rec.Type, err)
	}
	b.Truncate(b.Len() - len("}\n"))
	sum := lineSum(b.Bytes())
	b.WriteString(sumPrefix)
	b.WriteString(hex.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}))
	b.WriteString("\"}\n")
	if b.Len() > maxLine {
		return nil, fmt.Errorf("a %s record of %d bytes is more than the journal takes (%d)", rec.Type, b.Len(), maxLine)
	}
	return b.Bytes(), nil
}

// decode reads a line without its newline into rec.
func decode(line []byte, rec *Record) error {
	if len(line) < sumLen {
		return errors.New("the line is too short")
	}
	body, tail := line[:len(line)-sumLen], line[len(line)-sumLen:]
	if !bytes.HasPrefix(tail, []byte(sumPrefix)) || !bytes.HasSuffix(tail, []byte(`"}`)) {
		return errors.New("the line has no checksum")
	}
	var sum [4]byte
	if _, err := hex.Decode(sum[:], tail[len(sumPrefix):len(sumPrefix)+8]); err != nil {
		return errors.New("the checksum is not a number")
	}
	want := uint32(sum[0])<<24 | uint32(sum[1])<<16 | uint32(sum[2])<<8 | uint32(sum[3])
	if lineSum(body) != want {
		return errors.New("the checksum does not match")
	}
	*rec = Record{}
	if err := json.Unmarshal(line, rec); err != nil {
		return fmt.Errorf("the line is not a record: %w", err)
	}
	return nil
}
