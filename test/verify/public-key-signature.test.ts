import { testPublicKeys } from './public-key-signature.suite.ts'

testPublicKeys('on Node')
