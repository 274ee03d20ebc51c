package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// messages are forms that a server or the SDK writes, and some that nobody should.
func messages() []string {
	return []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":{"b":2}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":012,"result":{}}`,
		`{"jsonrpc":"2.0","id":1234567890123456789,"result":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"n":1e400}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"a\"b","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"a","params":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"a","params":{},"method":"b"}`,
		`{"jsonrpc":"2.0","id":3,"method":"` + "\xff" + `","params":{}}`,
		`{"jsonrpc":"2.0","id":"hb-1","method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":725653563933458433}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}}`,
		`{"jsonrpc":"2.0","id":7,"error":null,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":null}`,
		`{"jsonrpc":"2.0","id":7}`,
		`{"jsonrpc":"2.0","id":null,"method":"x","params":null}`,
		`{"jsonrpc":"2.0","id":1.5,"method":""}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"method":null}`,
		`{"jsonrpc":"2.0","id":7,"ID":8,"Method":"x","result":{}}`,
		`{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`,
		`{"jsonrpc":"2.0","id":true,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"error":"text"}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":"x"}}`,
		`{"jsonrpc":"1.0","id":7,"result":{}}`,
		`{"id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}} and more`,
		`{"jsonrpc":"2.0","id":7,"result":{"a":"\ud800 \u0000 ` + "\xff" + `"}}`,
		`{"jsonrpc":"2.0","id":7,"result":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
		`{"jsonrpc":"2.0","id":7,"result":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
		`{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat(`[{\"`, 2000) + `"}`,
		`null`, `[]`, `"x"`, `{}`, ``, `{`,
	}
}

// Whatever is read here, the SDK reads alike.
func TestDecodeMessageAgreesWithTheSDK(t *testing.T) {
	plain := 0
	for _, in := range messages() {
		agree(t, in)
		if plainMessage([]byte(in)) != nil {
			plain++
		}
	}
	if plain < 8 {
		t.Errorf("only %d of the messages are plain", plain)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, in := range messages() {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) { agree(t, in) })
}

func agree(t *testing.T, in string) {
	t.Helper()
	ours := plainMessage([]byte(in))
	if ours == nil {
		return // the SDK's word holds
	}
	theirs, err := jsonrpc.DecodeMessage([]byte(in))
	if err != nil {
		// The SDK's decoder refuses some texts, such as escapes of half a
		// character, that the standard one takes; those are fit to be read.
		if !json.Valid([]byte(in)) {
			t.Errorf("%.200q is taken, and the SDK says %v", in, err)
		}
		return
	}
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("%.200q is %+v here and %+v to the SDK", in, ours, theirs)
	}
}
