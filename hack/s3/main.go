// Command s3 is the S3 server of `rclone serve s3` with what the tests need of it: memory as storage, signatures that are
// checked, TLS, and a second address for the tests themselves.
//
// On the second address nothing is signed, GET /-/requests returns the requests of the first one since the last time it was
// asked, PUT /-/after-list takes objects to write or delete when the next listing was answered, and PUT /-/outage lets every request of
// the first one fail, or ends that.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

type configuration struct {
	// Addresses of clients and of the tests.
	Address, Control string
	// Secret keys by access keys. Without any, every request is accepted.
	Keys map[string]string
	// Files in PEM format; ClientCA makes client certificates mandatory.
	Certificate, Key, ClientCA string
}

// A change of an object: nothing as content deletes it.
type change struct {
	Bucket, Key string
	Content     *string
}

type recorder struct {
	sync.Mutex
	requests []string
	changes  []change
	outage   bool
}

func (r *recorder) wrap(clients, control http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.Lock()
		r.requests = append(r.requests, q.Method+" "+q.URL.RequestURI())
		outage := r.outage
		r.Unlock()
		if outage {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		clients.ServeHTTP(w, q)
		if q.URL.Query().Get("list-type") == "2" {
			r.Lock()
			due := r.changes
			r.changes = nil
			r.Unlock()
			for _, c := range due {
				apply(control, c)
			}
		}
	})
}

// apply makes a change by a request that is not signed.
func apply(control http.Handler, c change) {
	method, body := http.MethodDelete, ""
	if c.Content != nil {
		method, body = http.MethodPut, *c.Content
	}
	q, err := http.NewRequest(method, "http://control/"+c.Bucket+"/"+c.Key, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	q.RequestURI = q.URL.RequestURI()
	q.Header.Set("Content-Length", strconv.Itoa(len(body)))
	control.ServeHTTP(&discard{header: http.Header{}}, q)
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int) {
	if status >= 300 {
		log.Fatalf("a change failed with status %d", status)
	}
}

func (r *recorder) control(control http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/-/requests":
			r.Lock()
			requests := append([]string{}, r.requests...)
			r.requests = nil
			r.Unlock()
			_ = json.NewEncoder(w).Encode(requests)
		case "/-/after-list":
			var changes []change
			if err := json.NewDecoder(q.Body).Decode(&changes); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Lock()
			r.changes = changes
			r.Unlock()
		case "/-/outage":
			var outage bool
			if err := json.NewDecoder(q.Body).Decode(&outage); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Lock()
			r.outage = outage
			r.Unlock()
		default:
			control.ServeHTTP(w, q)
		}
	})
}

func main() {
	log.SetOutput(os.Stderr)
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var c configuration
	if err := json.Unmarshal(text, &c); err != nil {
		log.Fatal(err)
	}
	backend := s3mem.New()
	control := gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()
	clients := control
	if len(c.Keys) > 0 {
		clients = gofakes3.New(backend, gofakes3.WithV4Auth(c.Keys)).Server()
	}
	r := &recorder{}
	go func() { log.Fatal(http.ListenAndServe(c.Control, r.control(control))) }()
	server := &http.Server{Addr: c.Address, Handler: r.wrap(clients, control)}
	if c.Certificate == "" {
		log.Fatal(server.ListenAndServe())
	}
	if c.ClientCA != "" {
		pem, err := os.ReadFile(c.ClientCA)
		if err != nil {
			log.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		server.TLSConfig = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	}
	log.Fatal(server.ListenAndServeTLS(c.Certificate, c.Key))
}
