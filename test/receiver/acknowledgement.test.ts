import { expect, test } from 'vitest'
import { rejection } from '../../src/receiver/acknowledgement.ts'

test('the content length of a rejection counts bytes, not characters', () => {
  const { headers, body } = rejection('unavailable', 'the inbox “Zürich” cannot be reached 🎬')
  expect(headers['content-length']).toBe(String(Buffer.byteLength(body)))
  expect(Buffer.byteLength(body)).toBeGreaterThan(body.length)
})
