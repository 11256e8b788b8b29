import * as z from 'zod'
import { type Behaviour, faults } from '../sending/sending.ts'
import { verifierFor } from '../sending/signing.ts'
import { notAnObject, oneOf, readInput, unicode } from '../shared/input.ts'

// Node would reject a line break in a header, at every delivery.
const headerText = unicode.regex(/^[\x20-\x7e]*$/, { error: 'must be printable ASCII' })

const sign = z.discriminatedUnion(
  'scheme',
  [
    z.strictObject({
      scheme: z.literal('url-token'),
      secret: unicode,
      in: oneOf(['query', 'path']).optional(),
      parameter: unicode.optional(),
    }),
    z.strictObject({
      scheme: z.literal('header-token'),
      secret: unicode,
      header: unicode,
      prefix: headerText.optional(),
    }),
    z.strictObject({ scheme: z.literal('basic-auth'), username: unicode, password: unicode }),
    z.strictObject({
      scheme: z.literal('hmac-signature'),
      secret: unicode,
      header: unicode,
      algorithm: oneOf(['sha1', 'sha256', 'sha512']).optional(),
      encoding: oneOf(['hex', 'base64']).optional(),
      prefix: headerText.optional(),
      timestampHeader: unicode.optional(),
      signed: z.templateLiteral([z.string(), '{body}'], { error: 'must end with {body}' }).optional(),
    }),
    z.strictObject({
      scheme: z.literal('standard-webhooks'),
      secret: unicode,
      headers: oneOf(['webhook', 'svix']).optional(),
    }),
    z.strictObject({
      scheme: z.literal('timestamped-signature'),
      secret: unicode,
      header: unicode,
      time: headerText.optional(),
      signature: headerText.optional(),
    }),
  ],
  {
    error:
      'must be one of url-token, header-token, basic-auth, hmac-signature, standard-webhooks, timestamped-signature',
  },
)

const behaviour: z.ZodType<Behaviour> = z.strictObject(
  {
    format: oneOf(['flat', 'envelope']).optional(),
    sign: sign.optional(),
    fault: oneOf(faults).optional(),
  },
  notAnObject,
)

/** @throws WebhookError `invalid_option`, naming the field but never a secret */
export function readBehaviour(input: unknown): Behaviour {
  const read = readInput('behaviour', behaviour, input)
  // The verifier checks more than the schema. Otherwise a bad option would only show at the first delivery.
  if (read.sign !== undefined) verifierFor(read.sign)
  return read
}
