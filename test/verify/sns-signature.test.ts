import { testSns } from './sns-signature.suite.ts'

testSns('on Node')
