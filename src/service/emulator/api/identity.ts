import type { HonoRequest, MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { Authentication } from '../workspace/api-keys.ts'
import type { Workspace } from '../workspace/workspace.ts'

/** What the API's middleware sets on a request. */
export interface ApiEnv {
  Variables: { identity: Authentication }
}

/**
 * Authenticates a request. The official client sends a key pair twice, in the Authorization header and in its own
 * headers, and leaves a header empty if it has no value for it. So empty headers are ignored, and all credentials
 * present must be valid and belong to the same key.
 */
export function identify(workspace: Workspace, req: HonoRequest): Authentication {
  const authorization = req.header('authorization') ?? ''
  const publicKey = req.header('stream-public-key') ?? ''
  const secretKey = req.header('stream-secret-key') ?? ''
  const identities: Authentication[] = []
  if (authorization !== '') identities.push(authorize(workspace, authorization))
  if (publicKey !== '' || secretKey !== '') identities.push(workspace.authenticateKeyPair(publicKey, secretKey))
  return identities.reduce(agree, undefined) ?? { rejected: noCredentials }
}

/** Rejects requests without valid credentials, and keys that may only upload. */
export const fullAccessOnly: MiddlewareHandler<ApiEnv> = async (context, next) => {
  const identity = context.get('identity')
  if ('rejected' in identity) {
    context.header('WWW-Authenticate', 'Bearer')
    throw new HTTPException(401, { message: identity.rejected })
  }
  if (identity.type === 'only_upload') {
    throw new HTTPException(403, {
      message: 'an API key of type only_upload cannot do this: use a key of type full_access',
    })
  }
  return next()
}

function authorize(workspace: Workspace, authorization: string): Authentication {
  const [, scheme = '', value = ''] = /^(\w+) +(\S+)$/.exec(authorization) ?? []
  if (/^bearer$/i.test(scheme)) return workspace.authenticateToken(value)
  const [, publicKey, secretKey] = /^([^:]*):(.*)$/s.exec(Buffer.from(value, 'base64').toString()) ?? []
  if (/^basic$/i.test(scheme) && publicKey !== undefined && secretKey !== undefined) {
    return workspace.authenticateKeyPair(publicKey, secretKey)
  }
  return { rejected: 'the Authorization header must be `Bearer <access token>` or `Basic base64(<public>:<secret>)`' }
}

function agree(one: Authentication | undefined, other: Authentication): Authentication {
  if (one === undefined || 'rejected' in other) return other
  if ('rejected' in one || one.id === other.id) return one
  return { rejected: 'the Authorization header and the stream-…-key headers hold credentials of two different keys' }
}

const noCredentials =
  'no credentials: send stream-public-key and stream-secret-key, or `Authorization: Bearer <access token>`'
