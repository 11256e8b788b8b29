import { describe, expect, test } from 'vitest'
import { WebhookError } from '../../../../src/errors.ts'
import { faults } from '../../../../src/service/emulator/sending/sending.ts'
import { readBehaviour } from '../../../../src/service/emulator/service/behaviour.ts'

const secret = 's3cret'

describe('a behaviour', () => {
  test.each([
    {},
    { format: 'envelope' },
    ...faults.map((fault) => ({ fault })),
    { sign: { scheme: 'url-token', secret } },
    { sign: { scheme: 'url-token', secret, in: 'path' } },
    { sign: { scheme: 'header-token', secret, header: 'authorization', prefix: 'Bearer ' } },
    { sign: { scheme: 'basic-auth', username: 'media', password: secret } },
    { sign: { scheme: 'hmac-signature', secret, header: 'x-signature', timestampHeader: 'x-timestamp' } },
    { sign: { scheme: 'hmac-signature', secret, header: 'x-signature', algorithm: 'sha1', encoding: 'base64' } },
    {
      sign: { scheme: 'hmac-signature', secret, header: 'x', timestampHeader: 'x-t', signed: 'v0:{timestamp}:{body}' },
    },
    { sign: { scheme: 'standard-webhooks', secret: 'whsec_c2VjcmV0' } },
    { sign: { scheme: 'standard-webhooks', secret: 'whsec_c2VjcmV0', headers: 'svix' } },
    { sign: { scheme: 'timestamped-signature', secret, header: 'mux-signature' } },
    { sign: { scheme: 'timestamped-signature', secret, header: 'x-s', time: 'time', signature: 'sig1' } },
  ])('may be %j', (behaviour) => {
    expect(readBehaviour(behaviour)).toEqual(behaviour)
  })

  test.each<[unknown, string]>([
    [undefined, 'behaviour must be an object'],
    [null, 'behaviour must be an object'],
    [[], 'behaviour must be an object'],
    ['{}', 'behaviour must be an object'],
    [{ faults: 'drop' }, 'behaviour has no field faults'],
    [{ fault: 'dorp' }, 'behaviour.fault must be one of duplicate, '],
    [{ fault: null }, 'behaviour.fault must be one of duplicate, '],
    [{ format: 'xml' }, 'behaviour.format must be one of flat, envelope'],
    [{ sign: secret }, 'behaviour.sign must be one of url-token, '],
    [{ sign: {} }, 'behaviour.sign.scheme must be one of url-token, '],
    [{ sign: { scheme: 'jwt', secret } }, 'behaviour.sign.scheme must be one of url-token, '],
    [{ sign: { scheme: 'url-token' } }, 'behaviour.sign.secret must be a string'],
    [{ sign: { scheme: 'url-token', secret: [secret] } }, 'behaviour.sign.secret must be a string'],
    [
      { sign: { scheme: 'url-token', secret, parameter: 'half a \ud83d pair' } },
      'behaviour.sign.parameter must be well-formed Unicode',
    ],
    [{ sign: { scheme: 'url-token', secret: `${secret}\ud83d` } }, 'behaviour.sign.secret must be well-formed Unicode'],
    [{ sign: { scheme: 'url-token', secret, header: 'x' } }, 'behaviour.sign has no field header'],
    [{ sign: { scheme: 'url-token', secret, in: 'body' } }, 'behaviour.sign.in must be one of query, path'],
    [
      { sign: { scheme: 'url-token', secret: `${secret}\n` } },
      'urlToken: secret 1 of 1 begins or ends with white space',
    ],
    [{ sign: { scheme: 'header-token', secret, header: 'x y' } }, 'headerToken: header must be the name of a header'],
    [
      { sign: { scheme: 'header-token', secret, header: 'x', prefix: 'a\r\nb' } },
      'behaviour.sign.prefix must be printable ASCII',
    ],
    [
      { sign: { scheme: 'basic-auth', username: 'a:b', password: secret } },
      'basicAuth: give a username without a colon',
    ],
    [{ sign: { scheme: 'hmac-signature', secret, header: '' } }, 'hmacSignature: header must be the name of a header'],
    [
      { sign: { scheme: 'hmac-signature', secret, header: 'x', timestampHeader: 'a b' } },
      'hmacSignature: timestamp: header must be the name of a header',
    ],
    [
      { sign: { scheme: 'hmac-signature', secret, header: 'x-a', timestampHeader: 'X-A' } },
      'timestampHeader must differ from header',
    ],
    [
      { sign: { scheme: 'hmac-signature', secret, header: 'x', signed: '{body}.{timestamp}' } },
      'behaviour.sign.signed must end with {body}',
    ],
    [
      { sign: { scheme: 'hmac-signature', secret, header: 'x', signed: '{timestamp}.{body}' } },
      'hmacSignature: signed has {timestamp}, which needs the option timestamp',
    ],
    [
      { sign: { scheme: 'standard-webhooks', secret, headers: 'hook' } },
      'behaviour.sign.headers must be one of webhook, svix',
    ],
    [{ sign: { scheme: '__proto__', secret } }, 'behaviour.sign.scheme must be one of url-token, '],
    [{ fault: '__proto__' }, 'behaviour.fault must be one of duplicate, '],
    [
      { sign: { scheme: 'hmac-signature', secret, header: 'x', algorithm: 'md5' } },
      'behaviour.sign.algorithm must be one of sha1, sha256, sha512',
    ],
    [
      { sign: { scheme: 'standard-webhooks', secret } },
      'standardWebhooks: a secret must be base64, after its prefix whsec_',
    ],
  ])('of %j is rejected without showing a secret', (behaviour, message) => {
    const error = thrownBy(() => readBehaviour(behaviour))
    expect(error).toBeInstanceOf(WebhookError)
    expect(error).toMatchObject({ code: 'invalid_option', message: expect.stringMatching(new RegExp(`^${message}`)) })
    expect((error as Error).message).not.toContain(secret)
  })
})

function thrownBy(action: () => unknown): unknown {
  try {
    action()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
