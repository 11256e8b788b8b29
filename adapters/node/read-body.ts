import type { IncomingMessage } from 'node:http'
import type { BodyReader, DeliveryHeaders } from '../../src/index.ts'
import { Bytes } from '../shared/bytes.ts'

/** The requests that have to end after their body was taken from the buffer: all, or only those with a listener. */
export type RequestEnd = 'always' | 'if-heard'

type ReadBody = Awaited<ReturnType<BodyReader>>

/**
 * Returns true if Node has the whole body, and no reader has taken any of it. A body that came together with its head
 * is there one microtask after the request. It reads as few properties as possible: with Express on Node 20, each one
 * takes V8 up to half a microsecond.
 */
export function isBuffered(request: IncomingMessage, headers: DeliveryHeaders): boolean {
  const { readableLength: length } = request
  if (length === 0 || length !== Number(headers.get('content-length'))) return false
  // A stream that flows gives its chunks to another reader. One with an encoding counts characters. HTTP/2 may send
  // another length than it declares.
  return request.readableFlowing !== true && request.readableEncoding === null && request.httpVersionMajor === 1
}

/** Reads a body that is buffered, without a listener and a promise. */
export function takeBuffered(request: IncomingMessage, limit: number, end: RequestEnd): ReturnType<BodyReader> {
  const bytes: Buffer | null = request.read()
  // Another reader has read it since.
  if (bytes === null) return 'incomplete'
  // A request ends only while something reads it. Its `end` and `close` are a seventh of the CPU of a delivery, and few
  // listeners wait for them.
  if (end === 'always' || request.listenerCount('end') + request.listenerCount('close') > 0) request.resume()
  return bytes.byteLength > limit ? 'too_large' : bytes
}

/** Reads the body as it arrives. */
export function readStream(request: IncomingMessage, limit: number): Promise<ReadBody> {
  return new Promise((resolve) => {
    // It has no event left. HTTP/2 ends the stream of a request that was reset, and does not destroy it.
    if (request.destroyed || request.readableEnded) return resolve('incomplete')
    const bytes = new Bytes()
    const onData = (chunk: Buffer | string) => {
      // After a middleware called setEncoding, every reader gets strings.
      const piece = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? 'utf8') : chunk
      if (bytes.size + piece.byteLength > limit) finish('too_large')
      else bytes.add(piece)
    }
    const onEnd = () => {
      // HTTP/2 also ends the stream of a request that was reset.
      const declared = Number(request.headers['content-length'] ?? bytes.size)
      finish(request.aborted || bytes.size < declared ? 'incomplete' : bytes.all())
    }
    // When the sender disconnects, the stream closes without an end.
    const onClose = () => finish('incomplete')
    const finish = (result: ReadBody) => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose).pause()
      resolve(result)
    }
    // The stream is resumed, since one that a middleware has paused would stay paused.
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose).resume()
  })
}
