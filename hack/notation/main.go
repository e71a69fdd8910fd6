// Command notation makes certificates and signatures of the Notary Project, with its own libraries. It reads a request in JSON
// from its standard input and writes the answer to its standard output.
//
//	notation new   makes a key and a certificate chain for it
//	notation sign  signs a descriptor; returns the envelope
//	notation push  signs an artifact in a registry, and pushes the signature
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	_ "github.com/notaryproject/notation-core-go/signature/cose"
	_ "github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const payloadType = "application/vnd.cncf.notary.payload.v1+json"

// identity is a signer: its key (PKCS #8) and its certificates (DER), its own first.
type identity struct {
	Key   []byte   `json:"key"`
	Chain [][]byte `json:"chain"`
}

// certificate has what differs from a certificate that may sign code.
type certificate struct {
	Subject    string `json:"subject"`
	NotBefore  int64  `json:"notBefore"`
	NotAfter   int64  `json:"notAfter"`
	KeyUsage   *int   `json:"keyUsage"`
	Usages     []int  `json:"usages"`
	Authority  *bool  `json:"authority"`
	PathLength *int   `json:"pathLength"`
	OCSP       string `json:"ocsp"`
	CRL        string `json:"crl"`
	// Critical is an unknown critical extension.
	Critical bool `json:"critical"`
}

type newRequest struct {
	// Kind is that of the key: P-256, P-384, P-521, or the bits of RSA.
	Kind string `json:"kind"`
	// Key is used instead of a new one.
	Key []byte `json:"key"`
	// Authorities is the number of certificates above the own one; 0 for one that is signed by itself.
	Authorities int         `json:"authorities"`
	Own         certificate `json:"own"`
	Above       certificate `json:"above"`
}

type signRequest struct {
	Identity    identity            `json:"identity"`
	MediaType   string              `json:"mediaType"`
	Scheme      string              `json:"scheme"`
	ContentType string              `json:"contentType"`
	Payload     json.RawMessage     `json:"payload"`
	SigningTime int64               `json:"signingTime"`
	Expiry      int64               `json:"expiry"`
	Attributes  []map[string]string `json:"attributes"`
	// The artifact to sign in a registry.
	Reference string `json:"reference"`
	Username  string `json:"username"`
	Password  string `json:"password"`
}

func main() {
	answer, err := run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() (any, error) {
	if len(os.Args) != 2 {
		return nil, fmt.Errorf("usage: notation new|sign|push < REQUEST")
	}
	input := json.NewDecoder(os.Stdin)
	input.DisallowUnknownFields()
	if os.Args[1] == "new" {
		var request newRequest
		if err := input.Decode(&request); err != nil {
			return nil, err
		}
		return create(&request)
	}
	var request signRequest
	if err := input.Decode(&request); err != nil {
		return nil, err
	}
	key, chain, err := request.Identity.read()
	if err != nil {
		return nil, err
	}
	switch os.Args[1] {
	case "sign":
		return sign(&request, key, chain)
	case "push":
		return push(&request, key, chain)
	}
	return nil, fmt.Errorf("unknown command %q", os.Args[1])
}

func (i *identity) read() (crypto.PrivateKey, []*x509.Certificate, error) {
	key, err := x509.ParsePKCS8PrivateKey(i.Key)
	if err != nil {
		return nil, nil, err
	}
	var chain []*x509.Certificate
	for _, der := range i.Chain {
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, nil, err
		}
		chain = append(chain, parsed)
	}
	return key, chain, nil
}

func generate(kind string) (crypto.Signer, error) {
	switch kind {
	case "", "P-256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "P-384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "P-521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	}
	var bits int
	if _, err := fmt.Sscan(kind, &bits); err != nil {
		return nil, fmt.Errorf("unknown kind of key %q", kind)
	}
	return rsa.GenerateKey(rand.Reader, bits)
}

// create makes a chain from the root down.
func create(request *newRequest) (*identity, error) {
	result := &identity{}
	var parent *x509.Certificate
	var parentKey crypto.Signer
	for level := request.Authorities; level >= 0; level-- {
		key, err := generate(request.Kind)
		if level == 0 && len(request.Key) > 0 {
			var given any
			given, err = x509.ParsePKCS8PrivateKey(request.Key)
			key, _ = given.(crypto.Signer)
		}
		if err != nil {
			return nil, err
		}
		template := request.template(level)
		if parent == nil {
			parent, parentKey = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
		if err != nil {
			return nil, err
		}
		result.Chain = append([][]byte{der}, result.Chain...)
		if parent, err = x509.ParseCertificate(der); err != nil {
			return nil, err
		}
		if parentKey = key; level == 0 {
			result.Key, err = x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				return nil, err
			}
		}
	}
	return result, nil
}

func (r *newRequest) template(level int) *x509.Certificate {
	options, name := r.Own, "signer"
	template := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true}
	if level == 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	} else {
		options, name = r.Above, fmt.Sprintf("authority %d", level)
		template.KeyUsage, template.IsCA = x509.KeyUsageCertSign, true
	}
	template.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<62))
	template.Subject = pkix.Name{
		Country: []string{"US"}, Province: []string{"WA"}, Organization: []string{"Example, Inc."}, CommonName: name,
	}
	if options.Subject != "" {
		template.Subject = pkix.Name{CommonName: options.Subject}
	}
	template.NotBefore, template.NotAfter = time.Unix(options.NotBefore, 0), time.Unix(options.NotAfter, 0)
	if options.NotAfter == 0 {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	if options.KeyUsage != nil {
		template.KeyUsage = x509.KeyUsage(*options.KeyUsage)
	}
	if options.Usages != nil {
		template.ExtKeyUsage = nil
		for _, usage := range options.Usages {
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsage(usage))
		}
	}
	if options.Authority != nil {
		template.IsCA = *options.Authority
	}
	if options.PathLength != nil {
		template.MaxPathLen, template.MaxPathLenZero = *options.PathLength, *options.PathLength == 0
	}
	if options.OCSP != "" {
		template.OCSPServer = []string{options.OCSP}
	}
	if options.CRL != "" {
		template.CRLDistributionPoints = []string{options.CRL}
	}
	if options.Critical {
		id := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}
		template.ExtraExtensions = []pkix.Extension{{Id: id, Critical: true, Value: []byte{5, 0}}}
	}
	return template
}

func sign(request *signRequest, key crypto.PrivateKey, chain []*x509.Certificate) (any, error) {
	local, err := signature.NewLocalSigner(chain, key)
	if err != nil {
		return nil, err
	}
	envelope, err := signature.NewEnvelope(request.MediaType)
	if err != nil {
		return nil, err
	}
	asked := &signature.SignRequest{
		Payload:       signature.Payload{ContentType: payloadType, Content: request.Payload},
		Signer:        local,
		SigningTime:   time.Now(),
		SigningAgent:  "weir",
		SigningScheme: signature.SigningScheme(request.Scheme),
	}
	if request.ContentType != "" {
		asked.Payload.ContentType = request.ContentType
	}
	if request.SigningTime != 0 {
		asked.SigningTime = time.Unix(request.SigningTime, 0)
	}
	if request.Expiry != 0 {
		asked.Expiry = time.Unix(request.Expiry, 0)
	}
	for _, attribute := range request.Attributes {
		asked.ExtendedSignedAttributes = append(asked.ExtendedSignedAttributes, signature.Attribute{
			Key: attribute["key"], Value: attribute["value"], Critical: attribute["critical"] != "",
		})
	}
	made, err := envelope.Sign(asked)
	return map[string][]byte{"envelope": made}, err
}

func push(request *signRequest, key crypto.PrivateKey, chain []*x509.Certificate) (any, error) {
	repository, err := remote.NewRepository(request.Reference)
	if err != nil {
		return nil, err
	}
	repository.PlainHTTP = true
	// The registry of the tests deletes nothing.
	repository.SkipReferrersGC = true
	repository.Client = &auth.Client{
		Client: http.DefaultClient,
		Credential: auth.StaticCredential(repository.Reference.Registry, auth.Credential{
			Username: request.Username, Password: request.Password,
		}),
	}
	local, err := signer.NewGenericSigner(key, chain)
	if err != nil {
		return nil, err
	}
	options := notation.SignOptions{ArtifactReference: request.Reference}
	options.SignatureMediaType = request.MediaType
	signed, err := notation.Sign(context.Background(), local, registry.NewRepository(repository), options)
	return map[string]string{"digest": string(signed.Digest)}, err
}
