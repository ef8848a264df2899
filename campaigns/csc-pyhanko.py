"""Signs a PDF with a cloud-held key through pyHanko's CSC signer, and lets pyHanko judge the signature.

Run by csc-pyhanko.ts. Reads what it needs as JSON from standard input, writes what it saw as JSON to standard output.
"""

import asyncio
import base64
import io
import json
import sys

import aiohttp
from pyhanko.keys import load_certs_from_pemder_data
from pyhanko.pdf_utils.generic import ArrayObject, NumberObject, StreamObject
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.writer import PageObject, PdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, async_sign_pdf
from pyhanko.sign.general import SigningError
from pyhanko.sign.signers.csc_signer import (
    CSCAuthorizationManager,
    CSCServiceSessionInfo,
    CSCSigner,
    fetch_certs_in_csc_credential,
)
from pyhanko.sign.validation import async_validate_pdf_signature
from pyhanko_certvalidator import ValidationContext
from pyhanko_certvalidator.fetchers.aiohttp_fetchers import AIOHttpFetcherBackend


class AccessCode(CSCAuthorizationManager):
    """Authorizes the hashes of each signature with the access code."""

    def __init__(self, http, session, credential, pin):
        super().__init__(session, credential)
        self.http = http
        self.pin = pin

    async def authorize_signature(self, hash_b64s):
        async with self.http.post(
            self.csc_session_info.endpoint_url('credentials/authorize'),
            headers=self.auth_headers,
            json=self.format_csc_auth_request(pin=self.pin, hash_b64s=hash_b64s),
            raise_for_status=True,
        ) as response:
            return self.parse_csc_auth_response(await response.json())


class RevokesMeanwhile(AccessCode):
    """Revokes the certificate between the authorization and the signature."""

    def __init__(self, revoke, *args):
        super().__init__(*args)
        self.revoke = revoke

    async def authorize_signature(self, hash_b64s):
        authorized = await super().authorize_signature(hash_b64s)
        await self.revoke()
        return authorized


def blank_pdf():
    document = PdfFileWriter()
    media_box = ArrayObject([NumberObject(edge) for edge in (0, 0, 200, 200)])
    document.insert_page(PageObject(document.add_object(StreamObject(stream_data=b'')), media_box))
    out = io.BytesIO()
    document.write(out)
    return out


async def signed_pdf(signer):
    unsigned = IncrementalPdfFileWriter(blank_pdf())
    return (await async_sign_pdf(unsigned, PdfSignatureMetadata(field_name='Signature'), signer=signer)).getvalue()


async def judge(pdf, root, http):
    """Insists on fresh CRLs or OCSP answers, which it fetches from the service."""
    context = ValidationContext(
        trust_roots=[root],
        allow_fetching=True,
        revocation_mode='hard-fail',
        fetcher_backend=AIOHttpFetcherBackend(http),
    )
    status = await async_validate_pdf_signature(PdfFileReader(io.BytesIO(pdf)).embedded_signatures[0], context)
    return {'intact': status.intact, 'valid': status.valid, 'trusted': status.trusted, 'revoked': status.revoked}


async def refusal(attempt):
    try:
        await attempt
        return 'none'
    except SigningError as error:
        return str(error)


async def main(given):
    root = next(load_certs_from_pemder_data(given['root'].encode()))
    secret = base64.b64encode(f"{given['keyId']}:{given['authKey']}".encode()).decode()
    own_headers = {'X-CC-Key-ID': given['keyId'], 'X-CC-Auth-Key': given['authKey']}
    async with aiohttp.ClientSession() as http:

        async def post(url, headers, body):
            async with http.post(url, headers=headers, json=body, raise_for_status=True) as response:
                return await response.json() if response.status == 200 else None

        async def revoke_certificate():
            await post(given['revokeUrl'], own_headers, {'reason': 'superseded'})

        login = await post(f"{given['url']}/csc/v1/auth/login", {'Authorization': f'Basic {secret}'}, {})
        session = CSCServiceSessionInfo(given['url'], given['credentialID'], oauth_token=login['access_token'])
        credential = await fetch_certs_in_csc_credential(http, session)
        manager = (http, session, credential, given['pin'])
        pdf = await signed_pdf(CSCSigner(http, AccessCode(*manager)))
        # A byte of the page, which the signature covers.
        forged = pdf.replace(b'/MediaBox [ 0 0 200 200 ]', b'/MediaBox [ 0 0 201 200 ]', 1)
        seen = {
            'bytes': len(pdf),
            'signed': await judge(pdf, root, http),
            'forged': await judge(forged, root, http) if forged != pdf else None,
            'afterRevocation': await refusal(
                signed_pdf(CSCSigner(http, RevokesMeanwhile(revoke_certificate, *manager)))
            ),
            'revoked': await judge(pdf, root, http),
        }
        await post(session.endpoint_url('auth/revoke'), session.auth_headers, {'token': login['access_token']})
        seen['afterLogout'] = await refusal(fetch_certs_in_csc_credential(http, session))
        return seen


print(json.dumps(asyncio.run(main(json.load(sys.stdin)))))
