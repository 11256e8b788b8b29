import { expect, test } from 'vitest'
import { rejection } from '../../src/receiver/acknowledgement.ts'

test('the content length of a rejection counts bytes, not characters', () => {
  const { headers, body } = rejection('unavailable', 'the inbox “Zürich” cannot be reached 🎬')
  expect(headers['content-length']).toBe(String(Buffer.byteLength(body)))
  expect(Buffer.byteLength(body)).toBeGreaterThan(body.length)
})

test('a rejection has its own message, whichever one of its code came before', () => {
  const messageOf = (message: string) => JSON.parse(rejection('malformed', message).body).message
  expect(['no JSON', 'no type', 'no JSON', 'no JSON'].map(messageOf)).toEqual([
    'no JSON',
    'no type',
    'no JSON',
    'no JSON',
  ])
})

test('the rejection that the next delivery gets cannot be changed', () => {
  const { headers } = rejection('overloaded', 'too many events are waiting')
  expect(() => Object.assign(headers, { 'retry-after': '3600' })).toThrow(TypeError)
  expect(rejection('overloaded', 'too many events are waiting').headers['retry-after']).toBe('3')
})
