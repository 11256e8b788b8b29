// The names that the code of the pages uses without declaring them, so that a page shows what it is about.

/// <reference path="./vendors.d.ts" />

import type { Server } from 'node:http'
import type { MediaEvent, Receiver, Verifier } from 'media-webhooks'
import type { Client } from 'media-webhooks/client'

declare global {
  const receiver: Receiver
  const verify: Verifier
  const client: Client
  const server: Server
  const secret: string
  /** Where the receiver listens. */
  const url: string
  const db: { query(sql: string, values: readonly unknown[]): Promise<unknown> }

  const secretManager: {
    cached(name: string): Promise<string>
    secretsOf(tenant: string): Promise<readonly string[] | undefined>
  }

  function isOperator(request: Request): Promise<boolean>
  function userOf(cookie: string | null): Promise<{ readonly name: string; readonly isOperator: boolean } | undefined>
  function publish(mediaId: string, qualities: readonly string[]): Promise<void>
  function addRendition(mediaId: string, quality: string | undefined): Promise<void>
  function notify(event: MediaEvent): Promise<void>
  function audit(event: MediaEvent): Promise<void>
  function report(error: unknown): void
  function alertOperators(text: string): Promise<void>
  function count(name: string, label: string, value: number): void
}
