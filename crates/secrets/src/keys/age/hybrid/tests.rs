//! Files and identities of age itself.

use super::*;

/// An identity of age 1.3.1, and a file for it.
const IDENTITY: &str = "AGE-SECRET-KEY-PQ-1HXPGNVMWJ36JYXVLG9Y2P3YDE7QMR8FA8NTEX0FVLC68EZM0MSLQRP6TDM";
const SEALED: &str = "\
-----BEGIN AGE ENCRYPTED FILE-----
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IG1sa2VtNzY4eDI1NTE5IGxHUGlsaEZF
M09tVFZMOW1JeFZRQmdybnUrZFlSZEIxbGFWRkJqRzhIK3YyZm16QmNuRHZHZWVG
T0hQVUhocUdncUtiQ3djYXFJM2U4QWM0Tm55akJKUEhFdGNCWVZpdjdsdmdhNHFR
a1REZzh6OUltTHVCd2poUnhvQmlyVFBKZTk3dFhNeVhiZjBGMUJ4ZDNzN1hsSkJF
aDl3amFwNXI1ZmRsZHVkaEtUWHVqMnRwbllsUDlzRUVRMVNQRHVCdzcrM0E5WHZS
emZReXkrNGpDWlAyK2hIVmQzbTFQQU9reFp5QThaUXprZFh1M2VoUWxLalFxZmZN
dHh0U1NnUXRYdUpFMmJhYno3UHBxRTU1cy9RUEQzQ29rRDg3SmZpQzE4K2JKMlZC
VTEweTMxRXo2K3VQK3g3Q0dxbzZlSHlWc3ozTXdma1dkSGcxSTloQTVrU1lYWlky
aWxtcy9CQzNvVUc5d1FBdjBNaGNVQmxUNWJKWE5PeUFBcGEyR3hQZk1Ua1kycVhm
Ni8ycXM4L1V2NExaMVRBV3Uxc3VhMTFkVFRiRVI1a2w1RHdEL2NIVktjQlNtTXpJ
OU8vS21kOGRERW9mUmFPYXRlREQ4dnF4dnVRdDZpdVc1SFgzWlFPcUJjSnRBRWkr
d3NUL3Z3bVcvYlp5NnI4ckkrTENhemJwWUFiRGVONm9OQzh1RDQ0R1dLMzRMWDFa
UkpkQjJ3cGdhR003SzhFcGV2SjdrVkUxM251dmRQODRrNWhvVm52eUtldlpkUHhh
TGh0ekdRK240V1Y4eldkckh6cE9PdktMNXBNdUtTelpYVUROOVZmM2JQOUlmZVMy
T0czZ25oa3ZRQmV1SzNsSGlyd1RCS29TTmcyNEJuMVhtUzRBTXNZTWpFNnNrVkN1
YW5mVm5xOVZvK3pOc1FONFlHZ3ViZVExTlV6ak94NTNQTC9GczBsZHdYV1VsUjlJ
WnNPWm1kaU5HUFI4M1BsdEVDSjFzV0pPNEE1c2Zsc3UyOTBqbDk2ZUM2b3B4VnVi
R2cvMTAyazhVdkdtc055M0MrSjRURW1IMy82V3RnNW5oVXNXL0xVN2FJN01RL0Zl
NStjR3kreDBGdjNYeW9oYzRCa1pIVlQ0VlMvUFh0clN1Qzljc0pQNmk2VDYrWGFP
aFdCV2VqMjNFdE1pL054OGVWMVBlT0NuN3dHSGdoVGhHaDdVVHRzVi95bFJ4Mmdl
ZE9hSEpISllmYVdtYm5TM1FFbERvYnJTMGRZQWhJeHRNalB6a0R4KzdPWERkWUFa
ejV5UlV1dFdwUUhHbUI4ZVZVZlBQc0dCSnNNUnVqUk4xd0pIV0c1QitFUUxMM2xs
aFh3MEZieDZvRDk1Z1JWWWRjaXRqcjBEb3V1UFF6Nk0zM0Y3NDdJTDdTOG1zVkJ3
Vlh0VVU1elBmUlBaOE9DOSthN25hMCt1anoxOXhYYXVYN09JNEQ2R0RPSGo0eWhR
MEhMb0tkS1dsQ1RFNEtFOHkwSElJNGdYeWVyOWFGMTh1ZysyUnBMaUxVL1BPR01n
V25aRDFGbzhjelRDK1R1SnlOVlFZemx1RndkOTZQZHFHZThxMWV3dUI0cVEybkF5
bXYrUHNJNDI1L2FsYzIrR1ZNWVo1SkxPcmRra0JsYzhlWHBLdWIvWnpDMzQweHlY
T2NnMlFnWit2L2dPeTNJR2gyOTdWTmFORFdMWStnWWtEazhPZEs3VE5XR0dOZXg0
Rk5LRlpGdlpzRmlya21HeHV4M3pJWnZ4aVlxalBIbmU5UUFGWU5ZMDNiRnVjTFMx
OWl4czQ4NDR3SStMNHZZRmFUU2oyOVZDVGF5NUIxQzkyNXBNbEhzRmMzRG9lWFI2
VVlsTjdMZ0FUWTlCTkNiY1dXWW1ycmlXdVRoR09MOWx2US9DYVBrZ0Nrd3loZHc3
bGt4MFVTNWZCK1o5UG5KempCL09FSDFLNkk1US94QkYvc1JNMm01RThoSi9JdwpC
VzJGOFMyRjJFU2FCOUcvbTdxcENhbkgya2NiYmdmUG1CcnVqL3RkeElBCi0tLSB1
b3NGZ0V0UGUxdEhVMGhwdWk1bGxyM0NhTzd6dERqRkVPQlFEaEl4aHBnClKbD6a7
5ZUmiNgIBSrXtXvvYC0zSTRX9PVRW8gDEbPVzNIhGPiXZ2QM4WAO3K4SUchI1yHR
Fmq5hFiBEcMu/XI=
-----END AGE ENCRYPTED FILE-----
";

#[test]
fn files_of_age_are_opened() {
    let identity = HybridIdentity::parse(IDENTITY).unwrap();
    let other = format!("{PREFIX}1{}", "Q".repeat(10));
    assert!(HybridIdentity::parse(&other).is_none() && HybridIdentity::parse("AGE-SECRET-KEY-1").is_none());
    let stranger = "AGE-SECRET-KEY-1Q5M93U82SGJ9MGPA2Q3HVA4NMC4V2EWZTDY3XA7ZSP4R9VJ63UESL03U4P";
    assert!(HybridIdentity::parse(stranger).is_none());
    assert_eq!(
        age::decrypt(&identity, SEALED.as_bytes()).unwrap(),
        b"0123456789abcdef0123456789abcdef"
    );
    let stranger: age::x25519::Identity = stranger.parse().unwrap();
    let refused = age::decrypt(&stranger, SEALED.as_bytes()).unwrap_err();
    assert!(matches!(refused, DecryptError::NoMatchingKeys), "{refused}");
}

#[test]
fn malformed_stanzas_are_for_nobody() {
    let identity = HybridIdentity::parse(IDENTITY).unwrap();
    for (args, body) in [
        (vec![], vec![0; 32]),
        (vec!["x".to_owned()], vec![0; 32]),
        (vec![STANDARD_NO_PAD.encode([0; 1120])], vec![0; 32]),
        (vec![STANDARD_NO_PAD.encode([7; 1120])], vec![0; 3]),
        (vec![STANDARD_NO_PAD.encode([7; 1119])], vec![0; 32]),
    ] {
        let stanza = Stanza {
            tag: TAG.to_owned(),
            args,
            body,
        };
        assert!(age::Identity::unwrap_stanza(&identity, &stanza).is_none());
    }
}
